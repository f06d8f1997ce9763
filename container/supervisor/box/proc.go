//go:build linux

package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process is a line of the kernel's table. Its start tells it from a later one with the same pid.
type process struct {
	pid, parent, group int
	start              uint64
	state              byte // as ps shows it, which is that of the first thread
	threads            int
}

// zombie: a process whose first thread has ended looks like one, and lives on in the others.
func (p process) zombie() bool  { return p.ended() && p.threads <= 1 }
func (p process) ended() bool   { return p.state == 'Z' || p.state == 'X' }
func (p process) stopped() bool { return p.state == 'T' || p.state == 't' }

// descendants lists everything below the process with pid root, except zombies.
func descendants(root int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]process, len(all))
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var found []process
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			next = append(next, p.pid)
			if !p.zombie() {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid, buf); ok {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func readProcess(pid int, buf []byte) (process, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil || n <= 0 {
		return process{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat reads /proc/pid/stat. The name in it may hold anything, also ") R 1".
func parseStat(pid int, b []byte) (process, bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return process{}, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	threads, err3 := strconv.Atoi(string(f[17]))
	start, err4 := strconv.ParseUint(string(f[19]), 10, 64)
	p := process{pid: pid, parent: parent, group: group, start: start, state: f[0][0], threads: threads}
	return p, err1 == nil && err2 == nil && err3 == nil && err4 == nil
}

// send signals p unless its pid has meanwhile gone to another process.
func (p process) send(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil { // no pidfds here: an old kernel, or its filter
		_ = unix.Kill(p.pid, sig)
		return
	}
	defer unix.Close(fd)
	var buf [1024]byte
	if now, ok := readProcess(p.pid, buf[:]); !ok || now.start != p.start {
		return
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err == unix.ENOSYS || err == unix.EPERM {
		_ = unix.Kill(p.pid, sig)
	}
}

// freezeTime bounds the stopping of a tree: a process in the kernel's hands stops when it returns from there.
const freezeTime = time.Second

// freeze stops everything below root, until a look finds nothing that runs: what stands
// still can't fork. It returns what it saw last.
//
// Whole process groups are stopped, which is one step for the kernel. One process
// after the other would never catch up with parents that fork and exit at once. A group with a
// member in the tree is in the tree as a whole, since every leader begins a session.
//
// Without its first thread a process never looks stopped: it is killed at once.
func freeze(root int) []process {
	own := unix.Getpgrp()
	for begin := time.Now(); ; {
		list, err := descendants(root)
		if err != nil {
			return nil
		}
		asked := map[int]bool{}
		for _, p := range list {
			switch {
			case p.ended():
				p.send(unix.SIGKILL)
				asked[p.pid] = true
			case p.stopped() || asked[p.group]:
			case p.group == own || p.group <= 1:
				p.send(unix.SIGSTOP)
				asked[p.pid] = true
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

// slay freezes and kills everything below root. The dead still have to be reaped.
func slay(root int) []process {
	all := freeze(root)
	for _, p := range all {
		p.send(unix.SIGKILL)
	}
	return all
}

// slayAs is slay for a tree whose processes belong to uid. It stops all processes of
// that user first, in one step, so that nothing can run away from it; the others go on after a few
// milliseconds. It is for a container: outside, the user has processes that are none of ours.
func slayAs(root, uid int) []process {
	if uid == 0 || unix.Geteuid() != 0 {
		return slay(root)
	}
	signalUser(uid, unix.SIGSTOP)
	all := slay(root)
	signalUser(uid, unix.SIGCONT)
	return all
}

// nobodys is a user id that no job has: specs end at 2^31-1.
const nobodys = 1<<32 - 3

// signalUser sends sig to every process of uid and to no other. It borrows the user's identity on
// one thread for that: kill(-1) reaches whatever the caller may signal.
func signalUser(uid int, sig unix.Signal) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good if the identity can't be changed back: the thread ends then
		// As its effective user only: whose real user is the job's, the job can kill. Where nobody's
		// number isn't mapped, as in a user namespace, there is no other way.
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobodys, uintptr(uid), 0)
		if errno == unix.EINVAL {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), 0)
		}
		if errno != 0 {
			runtime.UnlockOSThread()
			return
		}
		_ = unix.Kill(-1, sig)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno == 0 {
			runtime.UnlockOSThread()
		}
	}()
	<-done
}
