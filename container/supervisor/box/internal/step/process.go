//go:build linux

package step

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/box/internal/sched"
)

// Arguments with which the box starts its own program as a step process.
const (
	Arg      = "step"
	ArgAlone = "step-alone" // see alone in the package's glossary
)

// sweep is how often ended children are looked for if nothing announces one.
const sweep = time.Second

// Run is the whole life of a step process. It returns when the box closes its socket, after the last command's
// tree is dead; an error means that the process could not be set up. Call it from the process's first thread.
//
// All of it happens on that thread, in one loop around poll: a goroutine for each event would cost more than
// the fork. The leader dies with the thread that forked it (Pdeathsig), which must therefore be one that
// lives as long as the process.
func Run(alone bool) error {
	score := oom.OpenStepScore() // before Shield: afterwards an unprivileged process may not open it
	runtime.LockOSThread()
	children, err := privs.Shield()
	if err != nil {
		return err
	}
	unix.Umask(0o022)
	privs.WarmThreads(3)
	sched.Prompt()
	ended, err := pipeOf(children)
	if err != nil {
		return err
	}
	s := &step{control: &fdReader{fd: controlFD}, pidfd: -1, alone: alone, score: score}
	for {
		control, child := s.poll(ended)
		if control {
			o, err := s.receive()
			if err != nil { // the box is gone
				s.destroy()
				return nil
			}
			s.obey(o)
		}
		if child {
			drainPipe(ended)
		}
		if s.isDue(time.Now()) {
			s.tick()
		}
		s.reap()
	}
}

// poll waits until there is something to do.
func (s *step) poll(ended int) (control, child bool) {
	fds := []unix.PollFd{
		{Fd: controlFD, Events: unix.POLLIN}, {Fd: int32(ended), Events: unix.POLLIN}, {Fd: int32(s.pidfd), Events: unix.POLLIN},
	}
	if _, err := unix.Poll(fds, s.pollTimeout(time.Now())); err != nil {
		return false, false
	}
	return fds[0].Revents != 0, fds[1].Revents != 0
}

// pollTimeout is how many milliseconds poll may wait: until the deadline, and never longer than sweep. An
// idle process has no children to look for.
func (s *step) pollTimeout(now time.Time) int {
	timeout := sweep
	if s.state == idle {
		timeout = time.Hour
	}
	if !s.due.IsZero() {
		// poll counts whole milliseconds: one more, or it would return just before the deadline, many times
		timeout = min(max(s.due.Sub(now)+time.Millisecond, 0), sweep)
	}
	return int(timeout / time.Millisecond)
}

// pipeOf makes signals visible to poll.
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
