//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

// exec runs one command: the step process its processes, this one its pipes.
func (b *box) exec(s *wire.Stream, params []byte) {
	cmd, err := wire.DecodeCommand(params)
	if err != nil {
		b.end(exitProtocol, "exec: "+err.Error())
		return
	}
	b.complete(&cmd)
	oom := b.oom.count()
	start := time.Now()
	x := b.run(s, cmd)
	x.OOM = b.oom.count() > oom
	if x.Lost != "" && x.OOM { // memory is why nobody saw the end, and everything of it is dead
		x.Lost, x.Code, x.Signal, x.Duration = "", 128+int(unix.SIGKILL), int(unix.SIGKILL), time.Since(start)
	}
	if b.down.Load() { // the box kills everything itself: this is no exit of a command
		return
	}
	_ = s.End(x.Encode())
	b.steps.fill()
}

// complete fills in what the command leaves to the box.
func (b *box) complete(cmd *wire.Command) {
	if cmd.UID < 0 || cmd.GID < 0 {
		cmd.UID, cmd.GID = b.set.UID, b.set.GID
	}
	b.useID(cmd.UID, cmd.GID)
	cmd.Dir = join(b.set.Workdir, cmd.Dir)
	cmd.Env = mergeEnv(b.env, cmd.Env)
}

func (b *box) run(s *wire.Stream, cmd wire.Command) wire.Exit {
	p, err := openPipes(cmd.Stdin)
	if err != nil {
		return wire.Exit{Code: codeNotExecutable, Error: err.Error()}
	}
	defer p.close()
	step, err := b.steps.take()
	if err != nil {
		return wire.Exit{Code: codeNotExecutable, Error: err.Error()}
	}
	err = step.start(cmd, p.child)
	p.closeChild()
	if err != nil {
		return b.lost(step)
	}
	if cmd.Stdin {
		go p.feed(s)
	}
	var copied sync.WaitGroup
	copied.Go(func() { p.copyOut(s, wire.Stdout, &p.out) })
	copied.Go(func() { p.copyOut(s, wire.Stderr, &p.err) })
	over, relayed := make(chan struct{}), make(chan struct{})
	go func() {
		b.relay(s, step, over)
		close(relayed)
	}()
	x, err := step.wait()
	close(over)
	<-relayed // a late word must not reach the step's next command
	switch {
	case err != nil:
		x = b.lost(step)
	case x.TimedOut || x.Canceled || x.Leftovers > 0: // looking for processes has made it grow
		b.steps.drop(step)
	default:
		b.steps.give(step)
	}
	p.finish(&copied)
	x.Output = p.out.count.Load() + p.err.count.Load()
	return x
}

// relay passes on that the command shall end.
func (b *box) relay(s *wire.Stream, step *stepProc, over <-chan struct{}) {
	select {
	case <-s.Canceled():
		step.tell(wire.Cancel, nil)
	case <-b.stopping:
		step.tell(wire.Stop, binary.BigEndian.AppendUint64(nil, uint64(b.stopGrace)))
	case <-over:
		return
	}
	select { // a stop may be more urgent than a cancel
	case <-b.stopping:
		step.tell(wire.Stop, binary.BigEndian.AppendUint64(nil, uint64(b.stopGrace)))
	case <-over:
	}
}

// lost cleans up after a step process that died under its command: its tree is now this process's.
func (b *box) lost(step *stepProc) wire.Exit {
	_ = unix.Kill(step.pid, unix.SIGKILL)
	b.steps.drop(step)
	b.killOrphans()
	return wire.Exit{Lost: "its step process died"}
}

// pipes are a command's three files.
type pipes struct {
	child    [3]int   // the command's ends: blocking, as programs expect; -1 when closed
	stdin    *os.File // nil without
	out, err outlet
}

// outlet is the box's end of stdout or stderr.
type outlet struct {
	file    *os.File
	count   atomic.Int64
	reading atomic.Bool
}

func openPipes(stdin bool) (*pipes, error) {
	p := &pipes{child: [3]int{-1, -1, -1}}
	var err error
	if stdin {
		p.child[0], p.stdin, err = pipe(0)
	} else {
		p.child[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		p.child[1], p.out.file, err = pipe(1)
	}
	if err == nil {
		p.child[2], p.err.file, err = pipe(1)
	}
	if err != nil {
		p.close()
		return nil, os.NewSyscallError("open pipes", err)
	}
	return p, nil
}

// pipe returns a pipe's end number side for the command, and the other one for this process.
func pipe(side int) (child int, own *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, nil, err
	}
	_ = unix.SetNonblock(fds[1-side], true)
	return fds[side], os.NewFile(uintptr(fds[1-side]), "pipe"), nil
}

func (p *pipes) closeChild() {
	for i, fd := range p.child {
		if fd >= 0 {
			_ = unix.Close(fd)
			p.child[i] = -1
		}
	}
}

func (p *pipes) close() {
	p.closeChild()
	for _, f := range []*os.File{p.stdin, p.out.file, p.err.file} {
		_ = f.Close() // of a nil File too
	}
}

// feed writes the stream's data to stdin. What the command does not want is
// read nevertheless, so that the sender is not held up.
func (p *pipes) feed(s *wire.Stream) {
	gone := false
	for {
		_, b, err := s.Next()
		if err != nil {
			_ = p.stdin.Close()
			return
		}
		if !gone {
			_, err := p.stdin.Write(b)
			gone = err != nil
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([wire.MaxData]byte) }}

func (p *pipes) copyOut(s *wire.Stream, t wire.Type, o *outlet) {
	buf := buffers.Get().(*[wire.MaxData]byte)
	defer buffers.Put(buf)
	for {
		o.reading.Store(true)
		n, err := o.file.Read(buf[:])
		o.reading.Store(false)
		if n > 0 {
			o.count.Add(int64(n))
			if _, err := s.WriteTagged(t, buf[:n]); err != nil {
				// Nobody takes it any more. Closing the pipe lets the command know.
				_ = o.file.Close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// finish waits until all output has been sent. The tree is dead, so the pipes end,
// unless some other process was given one of them: it is not waited for.
func (p *pipes) finish(copied *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { copied.Wait(); close(done) }()
	tick := time.NewTicker(drainTime / 2)
	defer tick.Stop()
	var last [2]int64
	for first := true; ; first = false {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for i, o := range []*outlet{&p.out, &p.err} {
			now := o.count.Load()
			if !first && o.reading.Load() && now == last[i] {
				_ = o.file.SetReadDeadline(time.Now())
			}
			last[i] = now
		}
	}
}
