//go:build linux

package main

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/step"
	"slipway/container/supervisor/internal/wire"
)

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
	reading atomic.Bool // a Read is waiting for the command
}

// openPipes opens a command's files. Without stdin the command reads an empty file.
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

// pipe returns both ends of a pipe: end number side (0 reads, 1 writes) for the command, the other one for
// this process.
func pipe(side int) (child int, own *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, nil, err
	}
	_ = unix.SetNonblock(fds[1-side], true)
	return fds[side], os.NewFile(uintptr(fds[1-side]), "pipe"), nil
}

// closeChild closes this process's copies of the command's ends, or the pipes would never end.
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
		_ = f.Close() // it may be nil, which Close allows
	}
}

// feed writes the stream's data to stdin. After the command has closed its stdin the rest is read
// nevertheless, so that the sender is not held up.
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

// copyOut sends what the command prints, until the pipe ends or the stream does.
func (p *pipes) copyOut(s *wire.Stream, t wire.Type, o *outlet) {
	buf := wire.Alloc(wire.MaxData)
	defer wire.Free(buf)
	for {
		o.reading.Store(true)
		n, err := o.file.Read(buf)
		o.reading.Store(false)
		if n > 0 {
			o.count.Add(int64(n))
			if _, err := s.WriteTagged(t, buf[:n]); err != nil {
				// Nobody takes the output any more. Closing the pipe tells the command.
				_ = o.file.Close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// finish waits until all output has been sent. The tree is dead, so that the pipes end, unless a process
// outside the tree holds one of them. That process is not waited for: a pipe that gives nothing between two ticks
// is closed. An outlet that waits for a slow worker instead is not reading, and keeps its time.
func (p *pipes) finish(copied *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { copied.Wait(); close(done) }()
	tick := time.NewTicker(step.DrainTime / 2)
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
