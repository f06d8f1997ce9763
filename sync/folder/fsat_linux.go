//go:build linux && (amd64 || arm64)

package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"

	wsync "slipway/sync"
)

// files reaches the files of one open folder by its descriptor. os.Root and os.File need twice the system calls for a
// file, and system calls are most of what thousands of small files cost. A name has one component and is opened with
// O_NOFOLLOW, so it can't lead out of the folder.
type files struct {
	dir    *os.File
	fd     int
	memory bool // see inMemory
}

func openFiles(root *os.Root) (files, error) {
	dir, err := root.Open(".")
	if err != nil {
		return files{}, err
	}
	return files{dir: dir, fd: int(dir.Fd()), memory: inMemory(dir)}, nil
}

func (d files) close() { d.dir.Close() }

// names lists the folder, once.
func (d files) names() ([]string, error) { return d.dir.Readdirnames(-1) }

// lstat describes what has this name.
func (d files) lstat(name, path string) (wsync.Node, error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return wsync.Node{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	var st syscall.Stat_t
	_, _, errno := syscall.Syscall6(sysFstatat, uintptr(d.fd), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&st)), atSymlinkNoFollow, 0, 0) //nolint:gosec // package syscall hides fstatat
	if errno != 0 {
		return wsync.Node{}, &fs.PathError{Op: "lstat", Path: path, Err: errno}
	}
	return nodeOfStat(path, &st, d.memory), nil
}

// open opens a regular file to read. Without O_NONBLOCK the opening of a named pipe would wait for its writer.
func (d files) open(name, path string) (*handle, wsync.Node, error) {
	f, err := d.openat(name, path, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, wsync.Node{}, err
	}
	n, err := f.stat(path)
	if err == nil && n.Type != wsync.TypeFile {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, wsync.Node{}, errors.Join(err, f.Close())
	}
	return f, n, nil
}

// create makes a file under a name that is free. The system may leave out bits of mode.
func (d files) create(name string, mode fs.FileMode) (*handle, error) {
	return d.openat(name, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, uint32(mode.Perm()))
}

func (d files) openat(name, path string, flags int, mode uint32) (*handle, error) {
	for {
		fd, err := syscall.Openat(d.fd, name, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, mode)
		if err == nil {
			return &handle{fd, d.memory}, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// handle is an open descriptor, which has to be closed.
type handle struct {
	fd     int
	memory bool
}

// Read implements io.Reader.
func (f *handle) Read(b []byte) (int, error) {
	for len(b) > 0 {
		n, err := syscall.Read(f.fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
	return 0, nil
}

// Write implements io.Writer.
func (f *handle) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := syscall.Write(f.fd, b[done:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

// Close implements io.Closer. After an EINTR the descriptor is closed, and a second try could close another file's.
func (f *handle) Close() error {
	if err := syscall.Close(f.fd); err != nil && !errors.Is(err, syscall.EINTR) {
		return os.NewSyscallError("close", err)
	}
	return nil
}

func (f *handle) stat(path string) (wsync.Node, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(f.fd, &st); err != nil {
		return wsync.Node{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return nodeOfStat(path, &st, f.memory), nil
}

func (f *handle) chmod(mode fs.FileMode) error {
	return os.NewSyscallError("fchmod", syscall.Fchmod(f.fd, uint32(mode.Perm())))
}

// setModTime leaves the access time as it is.
func (f *handle) setModTime(t time.Time) error {
	times := [2]syscall.Timespec{{Nsec: utimeOmit}, syscall.NsecToTimespec(t.UnixNano())}
	_, _, errno := syscall.Syscall6(syscall.SYS_UTIMENSAT, uintptr(f.fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0) //nolint:gosec // package syscall knows microseconds only
	if errno != 0 {
		return os.NewSyscallError("utimensat", errno)
	}
	return nil
}

// Values of the kernel's headers that package syscall lacks.
const (
	atSymlinkNoFollow = 0x100
	utimeOmit         = 0x3ffffffe
)

// nodeOfStat is nodeOf for the system's own structure.
func nodeOfStat(path string, st *syscall.Stat_t, memory bool) wsync.Node {
	n := wsync.Node{
		Path: path, Type: wsync.TypeOther, Mode: st.Mode & 0o7777,
		ModTime: st.Mtim.Nano(), ChangeTime: st.Ctim.Nano(), Inode: st.Ino,
	}
	if memory {
		n.ChangeTime = 0
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		n.Type, n.Size = wsync.TypeFile, st.Size
	case syscall.S_IFDIR:
		n.Type = wsync.TypeDir
	case syscall.S_IFLNK:
		n.Type = wsync.TypeSymlink
	}
	return n
}
