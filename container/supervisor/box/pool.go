//go:build linux

package main

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

// spares is how many idle step processes are kept for the next commands.
const spares = 2

// stepProc is the box's end of a step process. One command uses it at a time.
type stepProc struct {
	pid     int
	control *os.File
}

// stepPool keeps idle step processes. A step is idle only when its last command has no process left.
type stepPool struct {
	mu     sync.Mutex
	idle   []*stepProc
	pids   map[int]bool
	closed bool
}

var errClosed = errors.New("the box ends")

func (p *stepPool) take() (*stepProc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return s, nil
	}
	return p.spawn()
}

// fill makes a spare one if there is none.
func (p *stepPool) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) > 0 {
		return
	}
	if s, err := p.spawn(); err == nil { // else the next command will say why not
		p.idle = append(p.idle, s)
	}
}

func (p *stepPool) give(s *stepProc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < spares {
		p.idle = append(p.idle, s)
		return
	}
	p.forget(s)
}

func (p *stepPool) drop(s *stepProc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(s)
}

// forget closes the socket, at which the process ends.
func (p *stepPool) forget(s *stepProc) {
	delete(p.pids, s.pid)
	_ = s.control.Close()
}

// close makes the process that is being started the last one. Between its fork and its exec a child
// holds the thread that forked it, which the Go runtime then can't stop: were the child frozen
// there, this whole process would stand still for ever.
func (p *stepPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *stepPool) owns(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids[pid]
}

// spawn starts a step process. It inherits nothing but its socket and stderr.
func (p *stepPool) spawn() (*stepProc, error) {
	if p.closed {
		return nil, errClosed
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		return nil, &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	arg := argStep
	if os.Getpid() == 1 {
		arg = argStepAlone
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"box", arg}, &syscall.ProcAttr{
		Files: []uintptr{uintptr(null), uintptr(null), 2, uintptr(pair[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	_, _ = unix.Close(null), unix.Close(pair[1])
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, os.NewSyscallError("start step process", err)
	}
	_ = unix.SetNonblock(pair[0], true)
	s := &stepProc{pid: pid, control: os.NewFile(uintptr(pair[0]), "step")}
	p.pids[pid] = true
	return s, nil
}

// start hands over a command and the files that shall be its stdin, stdout and stderr.
func (s *stepProc) start(cmd wire.Command, fds [3]int) error {
	return sendFDs(s.control, wire.AppendFrame(nil, wire.Open, 0, cmd.Encode()), fds[:]...)
}

func (s *stepProc) tell(t wire.Type, payload []byte) {
	_ = sendFDs(s.control, wire.AppendFrame(nil, t, 0, payload)) // a dead process is noticed by wait
}

// wait returns the command's end, or an error if the process itself has ended.
func (s *stepProc) wait() (wire.Exit, error) {
	f, err := wire.ReadFrame(s.control, func(n int) []byte { return make([]byte, n) })
	if err != nil {
		return wire.Exit{}, err
	}
	return wire.DecodeExit(f.Payload)
}
