//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

const (
	// drainTime is what the rest of a tree gets to end by itself when its leader has ended: the
	// tail of a pipeline, mostly.
	drainTime = 100 * time.Millisecond
	// leftoverGrace is the time between TERM and KILL for what then still lives.
	leftoverGrace = 500 * time.Millisecond
	// slayPause is the time between two rounds of killing.
	slayPause = 5 * time.Millisecond
)

// phase is where a command stands.
type phase int

const (
	idle phase = iota
	running
	draining // the leader has ended; its descendants may end by themselves
	terming  // TERM was sent
	slaying  // KILL was sent, and is until nothing is left
)

// step runs one command after the other, each to the end of its whole tree. All of it happens on the
// process's first thread, in one loop around poll: a goroutine for each event would cost more than the fork.
type step struct {
	control *fdReader
	alone   bool // every process of the kernel's table is the box's
	phase   phase
	due     time.Time // when tick is to be called; zero: never
	cmd     wire.Command
	leader  int
	pidfd   int  // of the leader; -1 without
	ended   bool // the leader
	start   time.Time
	oom     oomScore
	exit    wire.Exit
	left    map[process]bool
}

type order struct {
	frame wire.Frame
	fds   []int
}

// sweep is how often children are looked for if nothing tells of one.
const sweep = time.Second

// runStep runs the commands of a box. alone says that all processes there are belong to the box.
func runStep(alone bool) int {
	oom := openOOMScore() // before shield: afterwards an unprivileged process may not
	// The leader dies with the thread that forked it, which must therefore be the process's first.
	runtime.LockOSThread()
	children, err := shield()
	if err != nil {
		complain("step", err)
		return 1
	}
	unix.Umask(0o022)
	warmThreads(3)
	s := &step{control: &fdReader{fd: controlFD}, pidfd: -1, alone: alone, oom: oom}
	ended, err := pipeOf(children)
	if err != nil {
		complain("step", err)
		return 1
	}
	for {
		control, child := s.wait(ended)
		if control {
			o, err := s.receive()
			if err != nil { // the box is gone
				s.destroy()
				return 0
			}
			s.obey(o)
		}
		if child {
			drainPipe(ended)
		}
		if !s.due.IsZero() && !time.Now().Before(s.due) {
			s.due = time.Time{}
			s.tick()
		}
		s.reap()
	}
}

// wait waits until there is something to do.
func (s *step) wait(ended int) (control, child bool) {
	fds := []unix.PollFd{
		{Fd: controlFD, Events: unix.POLLIN}, {Fd: int32(ended), Events: unix.POLLIN}, {Fd: int32(s.pidfd), Events: unix.POLLIN},
	}
	timeout := sweep
	if s.phase == idle {
		timeout = time.Hour // there are no children
	}
	if !s.due.IsZero() {
		timeout = min(max(time.Until(s.due)+time.Millisecond, 0), sweep) // poll counts whole milliseconds
	}
	if _, err := unix.Poll(fds, int(timeout/time.Millisecond)); err != nil {
		return false, false
	}
	return fds[0].Revents != 0, fds[1].Revents != 0
}

// pipeOf makes a signal visible to poll.
func pipeOf(signals <-chan os.Signal) (int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, os.NewSyscallError("pipe", err)
	}
	go func() {
		for range signals {
			_, _ = unix.Write(fds[1], []byte{0}) // a full pipe says the same
		}
	}()
	return fds[0], nil
}

func drainPipe(fd int) {
	var buf [64]byte
	for {
		if n, err := unix.Read(fd, buf[:]); n < len(buf) || err != nil {
			return
		}
	}
}

// receive reads one order. The box writes each in one go, so this does not stand still for long.
func (s *step) receive() (order, error) {
	f, err := wire.ReadFrame(s.control, func(n int) []byte { return make([]byte, n) })
	return order{f, s.control.take()}, err
}

func (s *step) obey(o order) {
	switch o.frame.Type {
	case wire.Open:
		s.begin(o)
	case wire.Cancel:
		s.cancel(s.cmd.Grace)
	case wire.Stop:
		if len(o.frame.Payload) == 8 {
			s.cancel(time.Duration(binary.BigEndian.Uint64(o.frame.Payload)))
		}
	}
}

func (s *step) begin(o order) {
	defer func() {
		for _, fd := range o.fds {
			_ = unix.Close(fd)
		}
	}()
	s.exit, s.left, s.ended, s.leader = wire.Exit{}, map[process]bool{}, false, 0
	s.start = time.Now()
	cmd, err := wire.DecodeCommand(o.frame.Payload)
	if err != nil || len(o.fds) != 3 {
		s.exit.Lost = "the step process was told nonsense"
		s.finish()
		return
	}
	s.cmd = cmd
	s.oom.raise()
	pid, code, reason := launch(cmd, o.fds)
	s.oom.restore()
	if reason != "" {
		s.exit.Code, s.exit.Error = code, reason
		s.finish()
		return
	}
	s.leader, s.phase = pid, running
	if fd, err := unix.PidfdOpen(pid, 0); err == nil { // else the signal tells of its end
		s.pidfd = fd
	}
	if cmd.Timeout > 0 {
		s.due = s.start.Add(cmd.Timeout)
	}
}

func (s *step) cancel(grace time.Duration) {
	switch s.phase {
	case running:
		s.exit.Canceled = true
		s.terminate(grace)
	case draining, terming:
		if s.ended || grace == 0 {
			s.slay()
		}
	}
}

func (s *step) tick() {
	switch s.phase {
	case running:
		s.exit.TimedOut = true
		s.terminate(s.cmd.Grace)
	case draining:
		s.terminate(leftoverGrace)
	case terming, slaying:
		s.slay()
	}
}

func (s *step) terminate(grace time.Duration) {
	if grace <= 0 {
		s.slay()
		return
	}
	s.phase = terming
	s.due = time.Now().Add(grace)
	list, _ := descendants(os.Getpid())
	s.note(list)
	for _, p := range list {
		p.send(unix.SIGTERM)
		p.send(unix.SIGCONT) // a stopped process would not see it
	}
}

func (s *step) slay() {
	s.phase = slaying
	s.note(s.slayTree())
	s.due = time.Now().Add(slayPause)
}

// slayTree kills once what is there now.
func (s *step) slayTree() []process {
	if s.alone {
		return slayAs(os.Getpid(), s.cmd.UID)
	}
	return slay(os.Getpid())
}

// note counts what is alive although the leader is not.
func (s *step) note(list []process) {
	if !s.ended {
		return
	}
	for _, p := range list {
		s.left[process{pid: p.pid, start: p.start}] = true
	}
}

// reap collects every child that has ended, and moves on if that changes something.
func (s *step) reap() {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			if s.phase != idle && s.ended {
				s.finish()
			}
			return
		case err != nil || pid <= 0:
			if s.ended && s.phase == running {
				s.phase = draining
				s.due = time.Now().Add(drainTime)
			}
			return
		}
		s.collect(pid, status, usage)
	}
}

func (s *step) collect(pid int, status syscall.WaitStatus, usage syscall.Rusage) {
	s.exit.CPU += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	s.exit.MaxRSS = max(s.exit.MaxRSS, usage.Maxrss*1024)
	if pid != s.leader || s.ended {
		return
	}
	s.ended = true
	if s.pidfd >= 0 {
		_ = unix.Close(s.pidfd)
		s.pidfd = -1
	}
	if status.Signaled() {
		s.exit.Signal = int(status.Signal())
		s.exit.Code = 128 + s.exit.Signal
	} else {
		s.exit.Code = status.ExitStatus()
	}
}

func (s *step) finish() {
	s.due = time.Time{}
	s.phase = idle
	s.exit.Duration = time.Since(s.start)
	s.exit.Leftovers = len(s.left)
	_ = sendEnd(controlFD, s.exit) // if the box is gone, listen says so
}

// destroy ends the tree without telling anyone.
func (s *step) destroy() {
	for {
		s.slayTree()
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); err == syscall.ECHILD {
			return
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // nothing tells when all are dead
	}
}
