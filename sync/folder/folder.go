package folder

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

	wsync "slipway/sync"
)

// New returns the Tree of the local folder dir, which has to exist. Another process that changes the folder meanwhile
// can't lead a read or a write out of it. Named pipes are never waited for. A name that the system can't hold is an
// error. The Tree needs no Close, and several goroutines may use it. Its callbacks are called one after the other.
func New(dir string) (wsync.Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open the folder %s: it is not a folder", dir)
	}
	return tree(dir), nil
}

// tree is the path of a folder. Each method opens it anew, so a Tree needs no Close.
type tree string

// walkDepth is one more than a state allows: an entry that lies too deep is seen and reported, and not entered.
const walkDepth = wsync.MaxDepth + 1

func (t tree) Walk(ctx context.Context, fn func(wsync.Node) error) error {
	root, err := openRoot(string(t))
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

func walkFolder(ctx context.Context, dir *openFolder, prefix string, names []string, depth int, fn func(wsync.Node) error) error {
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := dir.lstat(name, prefix+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if err != nil {
			err = fn(wsync.Node{Path: prefix + name, Type: wsync.TypeOther, Err: err})
		} else {
			err = walkEntry(ctx, dir, name, n, depth, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func walkEntry(ctx context.Context, dir *openFolder, name string, n wsync.Node, depth int, fn func(wsync.Node) error) error {
	switch {
	case n.Type == wsync.TypeSymlink:
		n.Target, n.Err = dir.root.Readlink(name)
	case n.Type == wsync.TypeDir && depth < walkDepth:
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

func (t tree) Hash(ctx context.Context, paths []string, fn func(wsync.Sum) error) error {
	return t.ReadAll(ctx, paths, func(c wsync.Content) error {
		s := wsync.Sum{Path: c.Node.Path, Err: c.Err}
		if c.Err == nil {
			m, h := md5.New(), sha256.New() //nolint:gosec // see the import
			s.Size, s.Err = io.Copy(io.MultiWriter(m, h), c.Reader)
			s.MD5, s.SHA256 = [16]byte(m.Sum(nil)), [32]byte(h.Sum(nil))
		}
		return fn(s)
	})
}

func (t tree) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	c, err := newCursor(string(t))
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
			err = fn(wsync.Content{Node: wsync.Node{Path: p}, Err: gone(err)})
		} else {
			err = fn(wsync.Content{Node: node, Reader: io.LimitReader(file, node.Size), After: func() (wsync.Node, error) { return file.stat(p) }})
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
		return fmt.Errorf("%w: %w", wsync.ErrNotFound, err)
	}
	return err
}

func (t tree) WriteAll(ctx context.Context, entries iter.Seq2[wsync.NewNode, error]) ([]wsync.Node, error) {
	c, err := newCursor(string(t))
	if err != nil {
		return nil, err
	}
	defer c.close()
	files := newWriters(ctx, string(t))
	defer files.close()
	var nodes []wsync.Node
	var folders []madeFolder
	for e, err := range entries {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, wsync.Node{})
		at := len(nodes) - 1
		if e.Type == wsync.TypeFile && int64(len(e.Data)) == e.Size {
			err = files.add(e, at)
		} else {
			nodes[at], err = t.writeNow(c, files, &e)
		}
		if err != nil {
			return nil, err
		}
		if e.Type == wsync.TypeDir {
			folders = append(folders, madeFolder{at, e.Mode})
		}
	}
	if err := files.wait(); err != nil {
		return nil, err
	}
	files.result(nodes)
	for _, f := range slices.Backward(folders) { // the deepest first
		n := &nodes[f.index]
		if *n, err = c.finishDir(n.Path, f.mode); err != nil {
			return nil, fmt.Errorf("write %q: %w", n.Path, err)
		}
	}
	return nodes, nil
}

// writeNow makes an entry at once. Folders and links wait until all files are made: no component of a path that a
// writer uses turns into a link meanwhile.
func (t tree) writeNow(c *cursor, files *writers, e *wsync.NewNode) (wsync.Node, error) {
	if e.Type != wsync.TypeFile {
		if err := files.wait(); err != nil {
			return wsync.Node{}, err
		}
	}
	n, err := c.write(e)
	if err != nil {
		return wsync.Node{}, fmt.Errorf("write %q: %w", e.Path, err)
	}
	return n, nil
}

func (t tree) Remove(ctx context.Context, paths []string) error {
	c, err := newCursor(string(t))
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
func nodeOf(p string, info fs.FileInfo) wsync.Node {
	n := wsync.Node{Path: p, Type: wsync.TypeOther, Mode: unixMode(info.Mode()), ModTime: info.ModTime().UnixNano()}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		n.Type, n.Size = wsync.TypeFile, info.Size()
	case mode.IsDir():
		n.Type = wsync.TypeDir
	case mode&fs.ModeSymlink != 0:
		n.Type = wsync.TypeSymlink
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
