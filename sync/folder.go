package wsync

import (
	"context"
	"crypto/md5" //nolint:gosec // the seed format's checksum
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Folder returns the Tree of a local folder, which has to exist. Everything is done relative to
// open folders, one component at a time, and no link is followed: what another process does in
// the folder meanwhile can't lead out of it. Pipes are never waited for. Names that the
// system can't hold are errors.
func Folder(dir string) (Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open the folder %s: it is none", dir)
	}
	return folder(dir), nil
}

// folder is opened by each method anew, so that it needs no Close.
type folder string

// walkDepth is one more than a state allows, so that what is too deep is seen and reported.
const walkDepth = maxDepth + 1

func (f folder) Walk(ctx context.Context, fn func(Node) error) error {
	root, err := openRoot(string(f))
	if err != nil {
		return err
	}
	defer root.close()
	names, err := root.sorted()
	if err != nil {
		return fmt.Errorf("list the folder: %w", err)
	}
	return walkFolder(ctx, root, "", names, 1, fn)
}

func walkFolder(ctx context.Context, dir *place, prefix string, names []string, depth int, fn func(Node) error) error {
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := dir.lstat(name, prefix+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if err != nil {
			err = fn(Node{Path: prefix + name, Type: TypeOther, Err: err})
		} else {
			err = walkEntry(ctx, dir, name, n, depth, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func walkEntry(ctx context.Context, dir *place, name string, n Node, depth int, fn func(Node) error) error {
	switch {
	case n.Type == TypeSymlink:
		n.Target, n.Err = dir.root.Readlink(name)
	case n.Type == TypeDir && depth < walkDepth:
		sub, err := openDir(dir.root, name)
		if err != nil {
			n.Err = err
			return fn(n)
		}
		defer sub.close()
		names, err := sub.sorted()
		if n.Err = err; err != nil {
			return fn(n)
		}
		if err := fn(n); err != nil {
			return err
		}
		return walkFolder(ctx, sub, n.Path+"/", names, depth+1, fn)
	}
	return fn(n)
}

func (f folder) Hash(ctx context.Context, paths []string, fn func(Sum) error) error {
	return f.ReadAll(ctx, paths, func(c Content) error {
		s := Sum{Path: c.Node.Path, Err: c.Err}
		if c.Err == nil {
			m, h := md5.New(), sha256.New() //nolint:gosec // see the import
			s.Size, s.Err = io.Copy(io.MultiWriter(m, h), c.Reader)
			s.MD5, s.SHA256 = [16]byte(m.Sum(nil)), [32]byte(h.Sum(nil))
		}
		return fn(s)
	})
}

func (f folder) ReadAll(ctx context.Context, paths []string, fn func(Content) error) error {
	c, err := newCursor(string(f))
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range paths {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		file, node, err := c.openFile(p)
		if err != nil {
			err = fn(Content{Node: Node{Path: p}, Err: gone(err)})
		} else {
			err = fn(Content{Node: node, Reader: io.LimitReader(file, node.Size), After: func() (Node, error) { return file.stat(p) }})
			file.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gone adds ErrNotFound to an error that says so in the system's words.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func (f folder) WriteAll(ctx context.Context, entries iter.Seq2[NewNode, error]) ([]Node, error) {
	c, err := newCursor(string(f))
	if err != nil {
		return nil, err
	}
	defer c.close()
	files := newWriters(ctx, string(f))
	defer files.close()
	var nodes []Node
	var folders []madeFolder
	for e, err := range entries {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, Node{})
		at := len(nodes) - 1
		if e.Type == TypeFile && int64(len(e.Data)) == e.Size {
			err = files.add(e, at)
		} else {
			nodes[at], err = f.writeNow(c, files, &e)
		}
		if err != nil {
			return nil, err
		}
		if e.Type == TypeDir {
			folders = append(folders, madeFolder{at, e.Mode})
		}
	}
	if err := files.wait(); err != nil {
		return nil, err
	}
	files.result(nodes)
	for _, f := range slices.Backward(folders) { // what lies deeper comes first
		n := &nodes[f.index]
		if *n, err = c.finishDir(n.Path, f.mode); err != nil {
			return nil, fmt.Errorf("write %q: %w", n.Path, err)
		}
	}
	return nodes, nil
}

// writeNow makes an entry at once. While files are made, nothing else is: no component of a path becomes a link.
func (f folder) writeNow(c *cursor, files *writers, e *NewNode) (Node, error) {
	if e.Type != TypeFile {
		if err := files.wait(); err != nil {
			return Node{}, err
		}
	}
	n, err := c.write(e)
	if err != nil {
		return Node{}, fmt.Errorf("write %q: %w", e.Path, err)
	}
	return n, nil
}

func (f folder) Remove(ctx context.Context, paths []string) error {
	c, err := newCursor(string(f))
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range paths {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		dir, name, err := c.parent(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
			continue
		}
		if err != nil {
			return fmt.Errorf("remove %q: %w", p, err)
		}
		c.forget(p)
		if err := dir.root.RemoveAll(name); err != nil {
			return fmt.Errorf("remove %q: %w", p, err)
		}
	}
	return nil
}

// nodeOf describes what stat found.
func nodeOf(p string, info fs.FileInfo) Node {
	n := Node{Path: p, Type: TypeOther, Mode: unixMode(info.Mode()), ModTime: info.ModTime().UnixNano()}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		n.Type, n.Size = TypeFile, info.Size()
	case mode.IsDir():
		n.Type = TypeDir
	case mode&fs.ModeSymlink != 0:
		n.Type = TypeSymlink
	}
	n.ChangeTime, n.Inode = statExtra(info)
	return n
}

func unixMode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for bit, unix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			out |= unix
		}
	}
	return out
}
