//go:build linux

package step

import (
	"encoding/binary"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/internal/wire"
)

const (
	// DrainTime is how long the rest of a tree may go on when its leader has ended and no more output comes. The rest is
	// mostly the tail of a pipeline, or it is ending: a process closes its files before it is seen to be dead.
	DrainTime = 100 * time.Millisecond
	// DrainLimit is how long the rest may go on at most, while it prints. A full pipe holds 64 KiB, some thousand short
	// lines, and a loop of a shell that starts a program for each takes a few milliseconds a line.
	DrainLimit = 10 * time.Second
	// leftoverGrace is the time between TERM and KILL for what lives on after the drain.
	leftoverGrace = 500 * time.Millisecond
	// slayPause is the time between two rounds of killing.
	slayPause = 5 * time.Millisecond
)

// state is where a command stands; see the package's documentation.
type state int

const (
	idle state = iota
	running
	draining
	terming
	slaying
)

// step runs one command after the other, each to the end of its whole tree.
type step struct {
	control *fdReader
	alone   bool // every process of the kernel's table is the box's
	score   oom.Score

	state  state
	due    time.Time // when tick is to be called; zero: never
	cmd    wire.Command
	leader int
	pidfd  int  // of the leader; -1 without
	ended  bool // the leader
	start  time.Time
	exit   wire.Exit
	left   map[proctree.ID]bool // leftovers seen so far

	printing bool // of the drain: more output may come
}

// order is a message of the box.
type order struct {
	frame wire.Frame
	fds   []int
}

// receive reads one order. The box writes each in one go, so that the rest of a frame is there soon.
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
	case wire.EOF:
		s.fallenSilent()
	}
}

// begin starts the command of an Open. A command that can't start has its End at once.
func (s *step) begin(o order) {
	defer func() {
		for _, fd := range o.fds {
			_ = unix.Close(fd)
		}
	}()
	s.exit, s.left, s.ended, s.leader = wire.Exit{}, map[proctree.ID]bool{}, false, 0
	s.start = time.Now()
	cmd, err := wire.DecodeCommand(o.frame.Payload)
	if err != nil || len(o.fds) != 3 {
		s.exit.Lost = "the step process received a malformed command"
		s.finish()
		return
	}
	s.cmd = cmd
	s.score.Raise()
	pid, code, reason := launch(cmd, o.fds)
	s.score.Restore()
	if reason != "" {
		s.exit.Code, s.exit.Error = code, reason
		s.finish()
		return
	}
	s.leader, s.state = pid, running
	if fd, err := unix.PidfdOpen(pid, 0); err == nil { // without one, SIGCHLD announces its end
		s.pidfd = fd
	}
	if cmd.Timeout > 0 {
		s.due = s.start.Add(cmd.Timeout)
	}
}

// cancel ends the command before its time. A second cancel with no grace makes a gentle one urgent.
func (s *step) cancel(grace time.Duration) {
	switch s.state {
	case running:
		s.exit.Canceled = true
		s.terminate(grace)
	case draining:
		s.exit.Cut = s.printing
		s.slay()
	case terming:
		if s.ended || grace == 0 {
			s.slay()
		}
	}
}

// drain gives the rest of the tree its time after the leader's end. The box, which reads the output, is told, and
// answers when no more of it comes.
func (s *step) drain() {
	s.state, s.printing = draining, true
	left := DrainLimit
	if s.cmd.Timeout > 0 {
		left = min(left, max(DrainTime, s.cmd.Timeout-time.Since(s.start)))
	}
	s.due = time.Now().Add(left)
	_ = send(s.control.fd, wire.EOF, nil) // if the box is gone, receive says so
}

// fallenSilent ends the drain after DrainTime.
func (s *step) fallenSilent() {
	if s.state != draining {
		return
	}
	s.printing = false
	if end := time.Now().Add(DrainTime); end.Before(s.due) {
		s.due = end
	}
}

// isDue reports whether the deadline has come.
func (s *step) isDue(now time.Time) bool { return !s.due.IsZero() && !now.Before(s.due) }

// tick does what the deadline of the state was set for.
func (s *step) tick() {
	s.due = time.Time{}
	switch s.state {
	case running:
		s.exit.TimedOut = true
		s.terminate(s.cmd.Grace)
	case draining:
		s.exit.Cut = s.printing
		s.terminate(leftoverGrace)
	case terming, slaying:
		s.slay()
	}
}

// terminate sends TERM to the tree, and sets the deadline for KILL.
func (s *step) terminate(grace time.Duration) {
	if grace <= 0 {
		s.slay()
		return
	}
	s.state = terming
	s.due = time.Now().Add(grace)
	s.note(s.terminateTree())
}

func (s *step) terminateTree() []proctree.Process {
	if s.alone {
		return proctree.TerminateAs(os.Getpid(), s.cmd.UID)
	}
	return proctree.Terminate(os.Getpid())
}

// slay kills what is there now, and sets the deadline for the next round.
func (s *step) slay() {
	s.state = slaying
	s.note(s.slayTree())
	s.due = time.Now().Add(slayPause)
}

func (s *step) slayTree() []proctree.Process {
	if s.alone {
		return proctree.KillAs(os.Getpid(), s.cmd.UID)
	}
	return proctree.Kill(os.Getpid())
}

// note counts processes as leftovers if the leader has ended.
func (s *step) note(list []proctree.Process) {
	if !s.ended {
		return
	}
	for _, p := range list {
		s.left[p.ID] = true
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
			if s.state != idle && s.ended {
				s.finish()
			}
			return
		case err != nil || pid <= 0:
			if s.ended && s.state == running {
				s.drain()
			}
			return
		}
		s.collect(pid, status, usage)
	}
}

// collect adds the usage of an ended child, and takes the exit code if it was the leader.
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

// finish sends the End of the command.
func (s *step) finish() {
	s.due = time.Time{}
	s.state = idle
	s.exit.Duration = time.Since(s.start)
	s.exit.Leftovers = len(s.left)
	_ = send(s.control.fd, wire.End, s.exit.Encode()) // if the box is gone, receive says so
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
