//go:build linux

package step

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/internal/wire"
)

// spares is how many idle step processes are kept for the next commands.
const spares = 2

// Pool starts step processes and keeps idle ones. A step process is idle only when its last command has
// no process left. It is safe for concurrent use.
type Pool struct {
	score oom.Score // of this process

	mu     sync.Mutex
	idle   []*Proc
	pids   map[int]*Proc
	closed bool
}

// NewPool returns an empty pool. score makes what is forked likelier to be killed for memory than this process.
func NewPool(score oom.Score) *Pool { return &Pool{score: score, pids: map[int]*Proc{}} }

// errClosed is why no step process starts any more.
var errClosed = errors.New("the box ends")

// Take returns an idle step process, or starts one. The caller gives it to Give or Drop.
func (p *Pool) Take() (*Proc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return s, nil
	}
	return p.spawn()
}

// Fill starts a spare process if there is none, so that the next command need not wait for it.
func (p *Pool) Fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) > 0 {
		return
	}
	if s, err := p.spawn(); err == nil { // after an error the next Take tries again, and reports it
		p.idle = append(p.idle, s)
	}
}

// Give takes back a process whose command is over.
func (p *Pool) Give(s *Proc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < spares && p.pids[s.pid] == s {
		p.idle = append(p.idle, s)
		return
	}
	p.forget(s)
}

// Drop ends a process that shall not be used again.
func (p *Pool) Drop(s *Proc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(s)
}

// forget closes the socket, at which the process ends.
func (p *Pool) forget(s *Proc) {
	if p.pids[s.pid] == s {
		delete(p.pids, s.pid)
	}
	_ = s.control.Close()
}

// Close waits for the process that is being started, and lets no other one start. Call it before you
// freeze children of this process: between its fork and its exec a child holds the thread that forked it, which
// the Go runtime then can't stop. A child frozen there would make this whole process stand still for ever.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// Owns reports whether pid is a step process of the pool.
func (p *Pool) Owns(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids[pid] != nil
}

// Ended notes that a child of this process has ended: it may be a step process.
func (p *Pool) Ended(pid int, status syscall.WaitStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.pids[pid]
	if s == nil {
		return
	}
	s.status = status
	close(s.ended)
	delete(p.pids, pid) // the kernel may give the number to another process
	if i := slices.Index(p.idle, s); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		_ = s.control.Close()
	}
}

// spawn starts a step process. It inherits only its socket and stderr.
func (p *Pool) spawn() (*Proc, error) {
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
	arg := Arg
	if os.Getpid() == 1 {
		arg = ArgAlone
	}
	p.score.Raise()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"box", arg}, &syscall.ProcAttr{
		Files: []uintptr{uintptr(null), uintptr(null), 2, uintptr(pair[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	p.score.Restore()
	_, _ = unix.Close(null), unix.Close(pair[1])
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, os.NewSyscallError("start step process", err)
	}
	_ = unix.SetNonblock(pair[0], true)
	s := &Proc{pid: pid, control: os.NewFile(uintptr(pair[0]), "step"), ended: make(chan struct{})}
	p.pids[pid] = s
	return s, nil
}

// Proc is the box's end of a step process. One command uses it at a time.
type Proc struct {
	pid     int
	control *os.File

	ended  chan struct{} // closed when the process has been reaped
	status syscall.WaitStatus
}

// Start hands over a command and the files that become its stdin, stdout and stderr. The caller keeps
// its own descriptors of them.
func (s *Proc) Start(cmd wire.Command, fds [3]int) error {
	return sendFDs(s.control, wire.AppendFrame(nil, wire.Open, 0, cmd.Encode()), fds[:]...)
}

// Cancel ends the command with its own grace.
func (s *Proc) Cancel() { s.send(wire.Cancel, nil) }

// Stop ends the command with the given grace.
func (s *Proc) Stop(grace time.Duration) {
	s.send(wire.Stop, binary.BigEndian.AppendUint64(nil, uint64(grace)))
}

// send ignores an error: Wait notices a dead process.
func (s *Proc) send(t wire.Type, payload []byte) {
	_ = sendFDs(s.control, wire.AppendFrame(nil, t, 0, payload))
}

// Wait returns the command's end, or an error if the process itself has ended. It calls drain, at most once, when the
// leader has ended and others live on: they have their time until Drained is called.
func (s *Proc) Wait(drain func()) (wire.Exit, error) {
	for {
		f, err := wire.ReadFrame(s.control, func(n int) []byte { return make([]byte, n) })
		if err != nil {
			return wire.Exit{}, err
		}
		if f.Type == wire.EOF {
			drain()
			continue
		}
		return wire.DecodeExit(f.Payload)
	}
}

// Drained says that no more output of the command is to be waited for.
func (s *Proc) Drained() { s.send(wire.EOF, nil) }

// Busy reports whether a process of the command computes, or waits for a disk.
func (s *Proc) Busy() bool {
	list, err := proctree.Descendants(s.pid)
	return err == nil && slices.ContainsFunc(list, proctree.Process.Busy)
}

// Fate waits for the end of a process that nobody here has ended, and returns how it ended. It gives up after limit.
func (s *Proc) Fate(limit time.Duration) (status syscall.WaitStatus, known bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.ended:
		return s.status, true
	case <-timer.C:
		return 0, false
	}
}

// Kill ends the process itself. The tree of its command becomes the box's children.
func (s *Proc) Kill() { _ = unix.Kill(s.pid, unix.SIGKILL) }
