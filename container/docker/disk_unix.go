//go:build linux || darwin

package docker

import "syscall"

// roomOf looks at the file system of dir. ok is false if this machine has no such folder: the engine is in another machine,
// or this program in a container.
func roomOf(dir string) (have room, ok bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return room{}, false
	}
	have = room{bytes: int64(st.Bavail) * int64(st.Bsize), inodes: -1}
	if st.Files > 0 { // btrfs and others make inodes as they need them
		have.inodes = int64(st.Ffree)
	}
	return have, true
}
