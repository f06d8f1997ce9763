//go:build linux

package main

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/step"
	"slipway/container/supervisor/internal/wire"
)

// exec runs one command. Its step process owns its processes, this process its pipes.
func (b *box) exec(s *wire.Stream, params []byte) {
	cmd, err := wire.DecodeCommand(params)
	if err != nil {
		b.life.end(exitProtocol, "exec: "+err.Error())
		return
	}
	b.complete(&cmd)
	kills := b.oom.Count()
	start := time.Now()
	x := b.run(s, cmd)
	x.OOM = b.oom.Count() > kills
	if x.Lost != "" && x.OOM { // the kernel killed the step process for memory, and all of the command is dead
		x.Lost, x.Code, x.Signal, x.Duration = "", 128+int(unix.SIGKILL), int(unix.SIGKILL), time.Since(start)
	}
	if b.life.isKilling() { // the box kills everything itself: this is no exit of a command
		return
	}
	_ = s.End(x.Encode())
	b.steps.Fill()
}

// complete fills in what the command leaves to the box.
func (b *box) complete(cmd *wire.Command) {
	if cmd.UID < 0 || cmd.GID < 0 {
		cmd.UID, cmd.GID = b.set.UID, b.set.GID
	}
	b.addUser(cmd.UID, cmd.GID)
	cmd.Dir = step.Join(b.set.Workdir, cmd.Dir)
	cmd.Env = mergeEnv(b.env, cmd.Env)
}

// run returns when the command's tree is dead and its output is sent.
func (b *box) run(s *wire.Stream, cmd wire.Command) wire.Exit {
	p, err := openPipes(cmd.Stdin)
	if err != nil {
		return wire.Exit{Code: step.CodeNotExecutable, Error: err.Error()}
	}
	defer p.close()
	proc, err := b.steps.Take()
	if err != nil {
		return wire.Exit{Code: step.CodeNotExecutable, Error: err.Error()}
	}
	err = proc.Start(cmd, p.child)
	p.closeChild()
	if err != nil {
		return b.lost(proc)
	}
	if cmd.Stdin {
		go p.feed(s)
	}
	copied := p.copyAll(s)
	over := make(chan struct{})
	var orders sync.WaitGroup
	orders.Go(func() { b.relay(s, proc, over) })
	x, err := proc.Wait(func() { orders.Go(func() { p.drain(proc, copied, over) }) })
	close(over)
	orders.Wait() // a late order must not reach the process's next command
	switch {
	case err != nil:
		x = b.lost(proc)
	case x.TimedOut || x.Canceled || x.Leftovers > 0: // looking for processes has made its memory grow
		b.steps.Drop(proc)
	default:
		b.steps.Give(proc)
	}
	if p.finish(copied) {
		x.Cut = true
	}
	x.Output = p.printed()
	return x
}

// relay tells the step process that the command shall end. over ends it.
func (b *box) relay(s *wire.Stream, proc *step.Proc, over <-chan struct{}) {
	select {
	case <-s.Canceled():
		proc.Cancel()
	case <-b.life.stopping:
		proc.Stop(b.life.stopGrace())
	case <-over:
		return
	}
	select { // a stop may be more urgent than a cancel
	case <-b.life.stopping:
		proc.Stop(b.life.stopGrace())
	case <-over:
	}
}

// lost cleans up after a step process that died under its command: its tree is now this process's.
func (b *box) lost(proc *step.Proc) wire.Exit {
	proc.Kill()
	b.steps.Drop(proc)
	b.killOrphans()
	return wire.Exit{Lost: "its step process died"}
}
