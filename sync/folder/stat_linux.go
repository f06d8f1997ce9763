package folder

import (
	"io/fs"
	"os"
	"syscall"
)

const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// statExtra returns the change time in nanoseconds and the inode; 0 where they are unknown.
func statExtra(info fs.FileInfo) (changeTime int64, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctim.Nano(), st.Ino
}

const tmpfsMagic = 0x01021994

// inMemory tells whether the files of dir may change without a new change time, which is then left out. On a tmpfs a
// write through a shared mapping to a page that was read before raises no fault, and moves neither of the two times.
func inMemory(dir *os.File) bool {
	var at syscall.Statfs_t
	return syscall.Fstatfs(int(dir.Fd()), &at) != nil || at.Type == tmpfsMagic
}
