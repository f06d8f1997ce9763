//go:build linux

package privs

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls fn with the file system rights of uid and gid. Only a privileged process can change
// them; another one has the rights of the commands already.
func AsUser(uid, gid int, fn func() error) error {
	if os.Geteuid() != 0 {
		return fn()
	}
	runtime.LockOSThread()
	old, oldGroup := os.Geteuid(), os.Getegid()
	defer func() {
		// If the rights can't be changed back, the thread stays locked and ends with this goroutine.
		if setFsIDs(old, oldGroup) == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := setFsIDs(uid, gid); err != nil {
		return err
	}
	return fn()
}

// setFsIDs sets both ids and reads them back: the calls themselves report no error.
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
