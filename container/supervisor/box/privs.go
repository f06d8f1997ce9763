//go:build linux

package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// setNoNewPrivs sets the flag on every thread: it belongs to a thread, and any may fork.
func setNoNewPrivs() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// asUser calls fn with the file system rights of uid and gid. Only a privileged
// process can change; another one already has the rights of the steps.
func asUser(uid, gid int, fn func() error) error {
	if os.Geteuid() != 0 {
		return fn()
	}
	runtime.LockOSThread()
	old, oldGroup := os.Geteuid(), os.Getegid()
	defer func() {
		// A thread that can't be changed back dies with this goroutine: it stays locked.
		if setFsIDs(old, oldGroup) == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := setFsIDs(uid, gid); err != nil {
		return err
	}
	return fn()
}

// setFsIDs sets and checks: the calls themselves report nothing.
func setFsIDs(uid, gid int) error {
	_, _ = unix.SetfsgidRetGid(gid)
	_, _ = unix.SetfsuidRetUid(uid)
	g, _ := unix.SetfsgidRetGid(-1)
	u, _ := unix.SetfsuidRetUid(-1)
	if u != uid || g != gid {
		return unix.EPERM
	}
	return nil
}
