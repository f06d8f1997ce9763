package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	wsync "slipway/sync"
)

var (
	errNotDir     = errors.New("a component of the path is not a folder")
	errNotRegular = errors.New("not a regular file")
	errSwapped    = errors.New("replaced while it was opened")
)

// cursor keeps the folders open that lead to the path used last: paths come sorted, so the next one needs most of them.
// One goroutine uses it.
type cursor struct {
	root  *openFolder
	names []string
	dirs  []*openFolder
}

// openFolder is an open folder: root for what is rare, files for what is not.
type openFolder struct {
	root *os.Root
	files
}

func openRoot(dir string) (*openFolder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	return newOpenFolder(root)
}

func newOpenFolder(root *os.Root) (*openFolder, error) {
	files, err := openFiles(root)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &openFolder{root, files}, nil
}

func (p *openFolder) close() {
	p.files.close()
	p.root.Close()
}

func (p *openFolder) sorted() ([]string, error) {
	names, err := p.names()
	slices.Sort(names)
	return names, err
}

func newCursor(dir string) (*cursor, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	return &cursor{root: root}, nil
}

func (c *cursor) close() {
	c.cut(0)
	c.root.close()
}

func (c *cursor) cut(n int) {
	for len(c.dirs) > n {
		c.dirs[len(c.dirs)-1].close()
		c.dirs, c.names = c.dirs[:len(c.dirs)-1], c.names[:len(c.names)-1]
	}
}

// forget closes the folder p and those below it, since p is about to be removed.
func (c *cursor) forget(p string) {
	if n := strings.Count(p, "/"); len(c.names) > n && strings.Join(c.names[:n+1], "/") == p {
		c.cut(n)
	}
}

// parent opens the folder that holds p, without following a link.
func (c *cursor) parent(p string) (*openFolder, string, error) {
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || !filepath.IsLocal(part) || filepath.Base(part) != part {
			return nil, "", fmt.Errorf("path %q has a component that is no name", p)
		}
	}
	dirs, name := parts[:len(parts)-1], parts[len(parts)-1]
	same := 0
	for same < len(dirs) && same < len(c.names) && dirs[same] == c.names[same] {
		same++
	}
	c.cut(same)
	at := c.root
	if same > 0 {
		at = c.dirs[same-1]
	}
	for _, d := range dirs[same:] {
		sub, err := openDir(at.root, d)
		if err != nil {
			return nil, "", err
		}
		c.dirs, c.names = append(c.dirs, sub), append(c.names, d)
		at = sub
	}
	return at, name, nil
}

// openDir opens a folder by name, and no link. os.Root follows links that stay inside, so the folder that was opened is
// compared with the one that Lstat saw.
func openDir(dir *os.Root, name string) (*openFolder, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%q: %w", name, errNotDir)
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := sub.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%q: %w", name, errSwapped)
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return newOpenFolder(sub)
}

// openFile opens a regular file to read.
func (c *cursor) openFile(p string) (*handle, wsync.Node, error) {
	dir, name, err := c.parent(p)
	if err != nil {
		return nil, wsync.Node{}, err
	}
	return dir.open(name, p)
}
