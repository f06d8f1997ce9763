package folder

import (
	"io/fs"
	"syscall"
)

// statExtra returns the change time in nanoseconds and the inode; 0 where they are unknown.
func statExtra(info fs.FileInfo) (changeTime int64, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctim.Nano(), st.Ino
}
