//go:build linux

package workspace

import (
	"strings"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// tree is the workspace: one open folder, below which every path is looked up. No
// symbolic link is followed anywhere, so that a process in the box can't redirect a lookup.
type tree struct {
	fd      int
	openat2 bool
	memory  bool // a tmpfs, whose times tell nothing: see infoOf
}

func newTree(fd int) tree {
	t := tree{fd: fd, openat2: true}
	var fs unix.Statfs_t
	t.memory = unix.Fstatfs(fd, &fs) != nil || fs.Type == unix.TMPFS_MAGIC
	probe, err := t.openDir(".")
	if err != nil { // ENOSYS, or EPERM from a filter that does not know the call
		t.openat2 = false
		return t
	}
	_ = unix.Close(probe)
	return t
}

// checkPath accepts "." and clean relative paths.
func checkPath(path string) error {
	if path == "." {
		return nil
	}
	if path == "" || len(path) >= unix.PathMax || strings.IndexByte(path, 0) >= 0 {
		return &pathError{wire.CodePath, "empty, too long, or with a zero byte"}
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return &pathError{wire.CodePath, "not a clean path relative to the workspace"}
		}
	}
	return nil
}

// split checks path and returns its folder and last element. The root has none.
func split(path string) (dir, base string, err error) {
	if err := checkPath(path); err != nil {
		return "", "", err
	}
	if path == "." {
		return "", "", &pathError{wire.CodePath, "the workspace itself"}
	}
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ".", path, nil
	}
	return path[:i], path[i+1:], nil
}

// openDir opens a folder for lookups only. The caller has checked the path.
func (t tree) openDir(path string) (int, error) {
	if !t.openat2 {
		return t.walkTo(path)
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range 100 {
		fd, err := unix.Openat2(t.fd, path, &how)
		if err != unix.EAGAIN && err != unix.EINTR { // EAGAIN: something was renamed meanwhile
			return fd, err
		}
	}
	return t.walkTo(path)
}

// walkTo is openDir where openat2 is missing: element by element.
func (t tree) walkTo(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(t.fd, ".", flags, 0)
	if err != nil || path == "." {
		return fd, err
	}
	for part := range strings.SplitSeq(path, "/") {
		next, err := unix.Openat(fd, part, flags, 0)
		if err == unix.ENOTDIR && isLink(fd, part) {
			err = unix.ELOOP
		}
		_ = unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

func isLink(dir int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// parent opens the folder of path.
func (t tree) parent(path string) (dir int, base string, err error) {
	folder, base, err := split(path)
	if err != nil {
		return -1, "", err
	}
	dir, err = t.openDir(folder)
	return dir, base, err
}

// makeDirs opens a folder, and makes it and its parents if they are missing.
func (t tree) makeDirs(path string, mode uint32) (int, error) {
	fd, err := t.openDir(path)
	if err != unix.ENOENT {
		return fd, err
	}
	dir, base, err := split(path)
	if err != nil {
		return -1, err
	}
	above, err := t.makeDirs(dir, 0o755)
	if err != nil {
		return -1, err
	}
	err = unix.Mkdirat(above, base, mode)
	_ = unix.Close(above)
	if err != nil && err != unix.EEXIST {
		return -1, err
	}
	return t.openDir(path)
}

// openFile opens the regular file base in dir for reading. It never waits, also not at a FIFO.
func openFile(dir int, base string) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, base, flags, 0)
	if err == unix.ELOOP || err == unix.ENXIO {
		return -1, st, &pathError{wire.CodeNotRegular, "not a regular file"}
	}
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return -1, st, &pathError{wire.CodeNotRegular, "not a regular file"}
	}
	return fd, st, nil
}
