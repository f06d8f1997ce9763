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
	return st.Ctimespec.Nano(), st.Ino
}

func inMemory(*os.File) bool { return false }
