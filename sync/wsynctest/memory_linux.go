package wsynctest

import "syscall"

// inMemory tells whether the tests' folders are on a tmpfs, of which trees report no change times.
func inMemory(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == 0x01021994
}
