//go:build linux

package proctree

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Kill freezes everything below the process with pid root, kills it, and returns what it killed. The
// dead still have to be reaped.
func Kill(root int) []Process {
	all := Freeze(root)
	for _, p := range all {
		p.Send(unix.SIGKILL)
	}
	return all
}

// KillAs is Kill for a tree whose processes belong to uid. It stops all processes of that user first,
// in one step, so that none can outrun it; those outside the tree go on after a few milliseconds. It is
// for a container. Outside of one the user has processes that do not belong to the box.
func KillAs(root, uid int) []Process { return endAs(root, uid, Kill) }

// TerminateAs is Terminate for a tree whose processes belong to uid, in the way of KillAs.
func TerminateAs(root, uid int) []Process { return endAs(root, uid, Terminate) }

func endAs(root, uid int, end func(root int) []Process) []Process {
	if uid == 0 || unix.Geteuid() != 0 {
		return end(root)
	}
	signalUser(uid, unix.SIGSTOP)
	all := end(root)
	signalUser(uid, unix.SIGCONT)
	return all
}

// freezeTime bounds the stopping of a tree. A process inside a long system call stops only when the call returns.
const freezeTime = time.Second

// Freeze stops everything below root, until a look finds nothing that runs: a stopped process can't
// fork. It returns what the last look saw.
//
// It stops whole process groups, which is one step for the kernel. Going from process to process, it would
// never catch up with parents that fork and exit at once. If one member of a group is in the tree, the
// whole group is, since every leader begins a session.
//
// A process without its first thread never looks stopped, so it is killed at once.
func Freeze(root int) []Process { return freeze(root, true) }

// Terminate sends TERM to everything below the process with pid root, stopped processes included, and returns what it
// found. The tree is frozen meanwhile: what is forked between a look and the signals would not hear of it, and live until
// its time is over. What is forked later, such as the commands of a shell's trap, gets no signal.
func Terminate(root int) []Process {
	all := freeze(root, false)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		told := map[int]bool{}
		for _, p := range all {
			switch {
			case !inOwnGroup(p):
				p.Send(sig)
			case !told[p.group]: // with the members that the last look has missed
				told[p.group] = true
				_ = unix.Kill(-p.group, sig)
			}
		}
	}
	return all
}

// inOwnGroup reports whether the group of p is of the tree alone: a signal to it reaches nobody else.
func inOwnGroup(p Process) bool { return p.group > 1 && p.group != unix.Getpgrp() }

func freeze(root int, killHalfDead bool) []Process {
	for begin := time.Now(); ; {
		list, err := Descendants(root)
		if err != nil {
			return nil
		}
		asked := map[int]bool{}
		for _, p := range list {
			switch {
			case p.ended() && !killHalfDead:
			case p.ended():
				p.Send(unix.SIGKILL)
				asked[p.PID] = true
			case p.stopped() || asked[p.group]:
			case !inOwnGroup(p):
				p.Send(unix.SIGSTOP)
				asked[p.PID] = true
			default:
				_ = unix.Kill(-p.group, unix.SIGSTOP)
				asked[p.group] = true
			}
		}
		if len(asked) == 0 || time.Since(begin) > freezeTime {
			return list
		}
	}
}

// Send signals p unless another process has its pid by now.
func (p Process) Send(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil { // an old kernel has no pidfds, and a seccomp filter may forbid them
		_ = unix.Kill(p.PID, sig)
		return
	}
	defer unix.Close(fd)
	var buf [1024]byte
	if now, ok := readProcess(p.PID, buf[:]); !ok || now.Start != p.Start {
		return
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err == unix.ENOSYS || err == unix.EPERM {
		_ = unix.Kill(p.PID, sig)
	}
}

// unusedUser is a user id that no job has: the ids of specs end at 2^31-1.
const unusedUser = 1<<32 - 3

// signalUser sends sig to every process of uid and to no other: kill(-1) reaches whatever its caller may signal. It takes
// the user's identity on one thread for that: on the caller's if the caller is locked to it, since beside a fork bomb
// another one waits for its first turn on the processor.
func signalUser(uid int, sig unix.Signal) {
	runtime.LockOSThread() // if the identity can't be changed back, it stays locked, and the thread ends with the goroutine
	if actAs(uid) != 0 {
		runtime.UnlockOSThread()
		return
	}
	_ = unix.Kill(-1, sig)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno == 0 {
		runtime.UnlockOSThread()
	}
}

// actAs makes this thread act as uid. It takes it as its effective user only: a process may kill one whose real
// user is its own, so that with another real user the job can't kill this thread. In a user namespace unusedUser
// is not mapped, and there is no other way than to take both.
func actAs(uid int) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unusedUser, uintptr(uid), 0)
	if errno == unix.EINVAL {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), 0)
	}
	return errno
}
