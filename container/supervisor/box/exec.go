//go:build linux

package main

import (
	"os"
	"sync"
	"syscall"
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
	kills, refusals, start := b.kills.Count(), b.refusals.Count(), time.Now()
	x, fate := b.run(s, cmd)
	x.OOM, x.Pids = b.kills.Count() > kills, b.refusals.Count() > refusals
	if x.Lost != "" {
		x = explain(x, fate, cmd.UID == 0 || os.Geteuid() != 0)
		x.Duration = time.Since(start)
	}
	if b.life.isKilling() { // the box kills everything itself: this is no exit of a command
		return
	}
	_ = s.End(x.Encode())
	b.steps.Fill()
}

// fate is how a step process ended that nobody here has ended.
type fate struct {
	known  bool
	status syscall.WaitStatus
}

// explain says whether a command ended its own step process, so that how the command itself ended is not known: all of it
// was killed. The kernel may have taken the process for memory. The process may have failed for want of a thread. A command
// that may signal it, as root and the box's own user may, can have ended it. Anything else stays unknown.
func explain(x wire.Exit, f fate, maySignal bool) wire.Exit {
	noThread := x.Pids && f.known && f.status.Exited()
	switch {
	case x.OOM, noThread:
	case maySignal && f.known:
		x.Unwatched = true
	default:
		return x
	}
	x.Lost, x.Code, x.Signal = "", 128+int(unix.SIGKILL), int(unix.SIGKILL)
	return x
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

// run returns when the command's tree is dead and its output is sent. fate is of a step process that was lost.
func (b *box) run(s *wire.Stream, cmd wire.Command) (x wire.Exit, f fate) {
	p, err := openPipes(cmd.Stdin)
	if err != nil {
		return wire.Exit{Code: step.CodeNotExecutable, Error: err.Error()}, f
	}
	defer p.close()
	proc, err := b.begin(cmd, p)
	if err != nil {
		return wire.Exit{Code: step.CodeNotExecutable, Error: err.Error()}, f
	}
	if cmd.Stdin {
		go p.feed(s)
	}
	copied := p.copyAll(s)
	over := make(chan struct{})
	var orders sync.WaitGroup
	orders.Go(func() { b.relay(s, proc, over) })
	x, err = proc.Wait(func() { orders.Go(func() { p.drain(proc, copied, over) }) })
	close(over)
	orders.Wait() // a late order must not reach the process's next command
	switch {
	case err != nil:
		x, f = b.lost(proc)
	case x.TimedOut || x.Canceled || x.Leftovers > 0: // looking for processes has made its memory grow
		b.steps.Drop(proc)
	default:
		b.steps.Give(proc)
	}
	if p.finish(copied) {
		x.Cut = true
	}
	x.Output = p.printed()
	return x, f
}

// begin hands the command to a step process. A spare one may have died meanwhile: then it has not begun anything.
func (b *box) begin(cmd wire.Command, p *pipes) (proc *step.Proc, err error) {
	defer p.closeChild()
	const tries = 4 // more than the pool has spare ones
	for range tries {
		proc, err = b.steps.Take()
		if err != nil {
			return nil, err
		}
		if err = proc.Start(cmd, p.child); err == nil {
			return proc, nil
		}
		proc.Kill()
		b.steps.Drop(proc)
	}
	return nil, err
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
func (b *box) lost(proc *step.Proc) (wire.Exit, fate) {
	var f fate
	f.status, f.known = proc.Fate(fateTime)
	proc.Kill()
	b.steps.Drop(proc)
	b.killOrphans()
	return wire.Exit{Lost: "its step process died"}, f
}

// fateTime is how long the end of a step process may take to be announced, after its socket has ended.
const fateTime = time.Second
