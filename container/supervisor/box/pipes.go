//go:build linux

package main

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

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
	sending atomic.Bool // what was read waits for the worker
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

// copyAll sends what the command prints. The channel is closed when both outputs have ended.
func (p *pipes) copyAll(s *wire.Stream) <-chan struct{} {
	var each sync.WaitGroup
	each.Go(func() { p.copyOut(s, wire.Stdout, &p.out) })
	each.Go(func() { p.copyOut(s, wire.Stderr, &p.err) })
	copied := make(chan struct{})
	go func() { each.Wait(); close(copied) }()
	return copied
}

// copyOut sends what the command prints, until the pipe ends or the stream does.
func (p *pipes) copyOut(s *wire.Stream, t wire.Type, o *outlet) {
	buf := wire.Alloc(wire.MaxData)
	defer wire.Free(buf)
	for {
		n, err := o.file.Read(buf)
		if n > 0 {
			o.count.Add(int64(n))
			o.sending.Store(true)
			_, err := s.WriteTagged(t, buf[:n])
			o.sending.Store(false)
			if err != nil {
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
