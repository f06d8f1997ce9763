package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	wsync "slipway/sync"
)

// tempPrefix begins the names of files that are written beside the one they replace. At the top of a workspace no state
// can hold such a name, so one that a crash left behind is never stored from there.
const tempPrefix = ".sandbox-state."

// write makes one entry in the folder that holds it.
func (c *cursor) write(e *wsync.NewNode) (wsync.Node, error) {
	dir, name, err := c.parent(e.Path)
	if err != nil {
		return wsync.Node{}, err
	}
	switch e.Type {
	case wsync.TypeDir:
		return writeDir(dir.root, name, e)
	case wsync.TypeFile:
		return writeFile(dir, name, e)
	case wsync.TypeSymlink:
		return writeLink(dir, name, e)
	default:
		return wsync.Node{}, fmt.Errorf("unknown type %q", e.Type)
	}
}

// madeFolder is a folder whose mode is still to be set.
type madeFolder struct {
	index int // in the nodes
	mode  fs.FileMode
}

// writeDir makes a folder that can be filled. Its own mode comes later, by finishDir.
func writeDir(dir *os.Root, name string, e *wsync.NewNode) (wsync.Node, error) {
	err := dir.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		info, statErr := dir.Lstat(name)
		if err = statErr; err == nil && !info.IsDir() {
			if err = dir.Remove(name); err == nil {
				err = dir.Mkdir(name, 0o700)
			}
		}
	}
	if err != nil {
		return wsync.Node{}, err
	}
	return wsync.Node{Path: e.Path, Type: wsync.TypeDir}, nil
}

// finishDir gives a folder its mode, and describes it.
func (c *cursor) finishDir(p string, mode fs.FileMode) (wsync.Node, error) {
	dir, name, err := c.parent(p)
	if err != nil {
		return wsync.Node{}, err
	}
	sub, err := openDir(dir.root, name)
	if err != nil {
		return wsync.Node{}, err
	}
	defer sub.close() // nothing is buffered
	f, err := sub.root.Open(".")
	if err != nil {
		return wsync.Node{}, err
	}
	defer f.Close() // opened to read
	if err := f.Chmod(mode.Perm()); err != nil {
		return wsync.Node{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return wsync.Node{}, err
	}
	return nodeOf(p, info), nil
}

// writeFile makes a file under its own name if that is free. Else it makes one under another name and renames it, so
// that other hard links to the old file keep the old content.
func writeFile(dir *openFolder, name string, e *wsync.NewNode) (wsync.Node, error) {
	temp := name
	f, err := dir.create(temp, e.Mode)
	if errors.Is(err, fs.ErrExist) {
		temp = tempPrefix + rand.Text()
		f, err = dir.create(temp, e.Mode)
	}
	if err != nil {
		return wsync.Node{}, err
	}
	n, err := fillFile(f, e)
	if err = errors.Join(err, f.Close()); err == nil && temp != name {
		err = dir.root.Rename(temp, name)
		if err == nil {
			n, err = dir.lstat(name, e.Path) // the rename changed its times
		}
	}
	if err != nil {
		dir.root.Remove(temp) //nolint:errcheck // the first error is the one to report
		return wsync.Node{}, err
	}
	return n, nil
}

func fillFile(f *handle, e *wsync.NewNode) (wsync.Node, error) {
	if e.Size > 0 {
		if err := copyContent(f, e); err != nil {
			return wsync.Node{}, err
		}
	}
	if !e.ModTime.IsZero() {
		if err := f.setModTime(e.ModTime); err != nil {
			return wsync.Node{}, err
		}
	}
	n, err := f.stat(e.Path)
	if err != nil || n.Mode == uint32(e.Mode.Perm()) {
		return n, err
	}
	if err := f.chmod(e.Mode); err != nil { // the umask took bits away
		return wsync.Node{}, err
	}
	return f.stat(e.Path)
}

func copyContent(f *handle, e *wsync.NewNode) error {
	if int64(len(e.Data)) == e.Size {
		_, err := f.Write(e.Data)
		return err
	}
	n, err := io.CopyN(f, e.Content, e.Size)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("content ends after %d of %d bytes", n, e.Size)
	}
	return err
}

func writeLink(at *openFolder, name string, e *wsync.NewNode) (wsync.Node, error) {
	dir := at.root
	err := dir.Symlink(e.Target, name)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := dir.Lstat(name); statErr == nil && !info.IsDir() {
			if err = dir.Remove(name); err == nil {
				err = dir.Symlink(e.Target, name)
			}
		}
	}
	if err != nil {
		return wsync.Node{}, err
	}
	n, err := at.lstat(name, e.Path)
	n.Target = e.Target
	return n, err
}
