package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	wsync "slipway/sync"
)

// portableFiles reaches the files of one open folder by package os. It is compiled everywhere, so that a test holds it
// against the faster one.
type portableFiles struct {
	root   *os.Root
	memory bool // see inMemory
}

func openPortable(root *os.Root) (portableFiles, error) {
	dir, err := root.Open(".")
	if err != nil {
		return portableFiles{}, err
	}
	defer dir.Close()
	return portableFiles{root, inMemory(dir)}, nil
}

func (d portableFiles) close() {}

// names lists the folder.
func (d portableFiles) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// lstat describes what has this name.
func (d portableFiles) lstat(name, path string) (wsync.Node, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return wsync.Node{}, err
	}
	return d.node(path, info), nil
}

// node describes what stat found.
func (d portableFiles) node(path string, info fs.FileInfo) wsync.Node {
	n := nodeOf(path, info)
	if d.memory {
		n.ChangeTime = 0
	}
	return n
}

// open opens a regular file to read, and no link. os.Root follows links that stay inside, so the file that was opened
// is compared with the one that Lstat saw. Without O_NONBLOCK the opening of a named pipe would wait for its writer.
func (d portableFiles) open(name, path string) (*portableHandle, wsync.Node, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, wsync.Node{}, err
	}
	if !before.Mode().IsRegular() {
		return nil, wsync.Node{}, fmt.Errorf("%q: %w", path, errNotRegular)
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, wsync.Node{}, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%q: %w", path, errSwapped)
	}
	if err != nil {
		return nil, wsync.Node{}, errors.Join(err, f.Close())
	}
	return &portableHandle{f, d, name}, d.node(path, after), nil
}

// create makes a file under a name that is free. The system may leave out bits of mode.
func (d portableFiles) create(name string, mode fs.FileMode) (*portableHandle, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return nil, err
	}
	return &portableHandle{f, d, name}, nil
}

// portableHandle is an open file, which has to be closed.
type portableHandle struct {
	*os.File
	in   portableFiles
	name string
}

func (f *portableHandle) stat(path string) (wsync.Node, error) {
	info, err := f.Stat()
	if err != nil {
		return wsync.Node{}, err
	}
	return f.in.node(path, info), nil
}

func (f *portableHandle) chmod(mode fs.FileMode) error { return f.Chmod(mode.Perm()) }

// setModTime leaves the access time as it is.
func (f *portableHandle) setModTime(t time.Time) error {
	return f.in.root.Chtimes(f.name, time.Time{}, t)
}
