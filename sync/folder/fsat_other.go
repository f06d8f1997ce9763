//go:build !linux || (!amd64 && !arm64)

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	wsync "slipway/sync"
)

// files reaches the files of one open folder.
type files struct{ root *os.Root }

func openFiles(root *os.Root) (files, error) { return files{root}, nil }

func (d files) close() {}

// names lists the folder.
func (d files) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// lstat describes what has this name.
func (d files) lstat(name, path string) (wsync.Node, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return wsync.Node{}, err
	}
	return nodeOf(path, info), nil
}

// open opens a regular file to read, and no link. os.Root follows links that stay inside, so the file that was opened
// is compared with the one that Lstat saw. Without O_NONBLOCK the opening of a named pipe would wait for its writer.
func (d files) open(name, path string) (*handle, wsync.Node, error) {
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
	return &handle{f, d.root, name}, nodeOf(path, after), nil
}

// create makes a file under a name that is free. The system may leave out bits of mode.
func (d files) create(name string, mode fs.FileMode) (*handle, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return nil, err
	}
	return &handle{f, d.root, name}, nil
}

// handle is an open file, which has to be closed.
type handle struct {
	*os.File
	root *os.Root
	name string
}

func (f *handle) stat(path string) (wsync.Node, error) {
	info, err := f.Stat()
	if err != nil {
		return wsync.Node{}, err
	}
	return nodeOf(path, info), nil
}

func (f *handle) chmod(mode fs.FileMode) error { return f.Chmod(mode.Perm()) }

// setModTime leaves the access time as it is.
func (f *handle) setModTime(t time.Time) error { return f.root.Chtimes(f.name, time.Time{}, t) }
