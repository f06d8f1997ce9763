package mock

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/container"
)

// disk is a workspace in memory. It is safe for concurrent use; contents are
// replaced, never changed, so that a reader keeps what it has opened.
type disk struct {
	mu    sync.Mutex
	root  *node
	limit int64 // bytes of all files; 0: none
	used  int64
	inode uint64
}

type node struct {
	typ     container.FileType
	mode    uint32
	mod     time.Time
	change  time.Time
	inode   uint64
	content []byte           // of a file
	target  string           // of a link
	entries map[string]*node // of a folder
}

func newDisk(limit int64) *disk {
	d := &disk{limit: limit}
	d.root = d.make(container.TypeDir, 0o777)
	return d
}

func (d *disk) make(typ container.FileType, mode fs.FileMode) *node {
	d.inode++
	now := time.Now()
	n := &node{typ: typ, mode: unixMode(mode), mod: now, change: now, inode: d.inode}
	if typ == container.TypeDir {
		n.entries = map[string]*node{}
	}
	return n
}

func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, unix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= unix
		}
	}
	return mode
}

func (n *node) info(path string) container.FileInfo {
	i := container.FileInfo{
		Path: path, Type: n.typ, Mode: n.mode, ModTime: n.mod.UnixNano(), ChangeTime: n.change.UnixNano(),
		Inode: n.inode, Target: n.target,
	}
	switch n.typ {
	case container.TypeFile:
		i.Size = int64(len(n.content))
	case container.TypeSymlink:
		i.Size = int64(len(n.target))
	}
	return i
}

// split checks a path and returns its parts; none for the workspace itself.
func split(path string) ([]string, error) {
	if path == "." {
		return nil, nil
	}
	parts := strings.Split(path, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0) || len(part) > 255 {
			return nil, fmt.Errorf("%w: %q", container.ErrPath, path)
		}
	}
	return parts, nil
}

// folder walks to the folder that parts name, making what is missing if wanted.
func (d *disk) folder(path string, parts []string, mode fs.FileMode, mk bool) (*node, error) {
	n := d.root
	for _, part := range parts {
		next, ok := n.entries[part]
		switch {
		case !ok && mk:
			next = d.make(container.TypeDir, mode)
			n.entries[part] = next
			n.touch()
		case !ok:
			return nil, fmt.Errorf("%w: %s", container.ErrNotFound, path)
		case next.typ == container.TypeSymlink:
			return nil, fmt.Errorf("%w: %s passes through a link", container.ErrPath, path)
		case next.typ != container.TypeDir && mk:
			return nil, fmt.Errorf("%w: %s is in the way", container.ErrExists, part)
		case next.typ != container.TypeDir:
			return nil, fmt.Errorf("%w: %s", container.ErrNotFound, path)
		}
		n = next
	}
	return n, nil
}

func (n *node) touch() {
	n.mod = time.Now()
	n.change = n.mod
}

// lookup returns what is at path. The caller holds mu.
func (d *disk) lookup(path string) (*node, error) {
	parts, err := split(path)
	if err != nil || len(parts) == 0 {
		return d.root, err
	}
	last := len(parts) - 1
	dir, err := d.folder(path, parts[:last], 0, false)
	if err != nil {
		return nil, err
	}
	n, ok := dir.entries[parts[last]]
	if !ok {
		return nil, fmt.Errorf("%w: %s", container.ErrNotFound, path)
	}
	return n, nil
}

func (d *disk) stat(path string) (container.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(path)
	if err != nil {
		return container.FileInfo{}, err
	}
	return n.info(path), nil
}

// open returns a regular file's content and what it was at that moment.
func (d *disk) open(path string) (container.FileInfo, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(path)
	if err != nil {
		return container.FileInfo{}, nil, err
	}
	if n.typ != container.TypeFile {
		return container.FileInfo{}, nil, fmt.Errorf("%w: %s", container.ErrNotRegular, path)
	}
	return n.info(path), n.content, nil
}

func (d *disk) read(path string) ([]byte, error) {
	_, content, err := d.open(path)
	return content, err
}

// write puts a file at path. A zero mod means now.
func (d *disk) write(path string, content []byte, mode fs.FileMode, mod time.Time) (container.FileInfo, error) {
	return d.put(path, mod, func() *node {
		n := d.make(container.TypeFile, mode)
		n.content = content
		return n
	})
}

func (d *disk) link(path, target string, mod time.Time) (container.FileInfo, error) {
	return d.put(path, mod, func() *node {
		n := d.make(container.TypeSymlink, 0o777)
		n.target = target
		return n
	})
}

// put replaces whatever is at path, unless that is a folder.
func (d *disk) put(path string, mod time.Time, mk func() *node) (container.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parts, err := split(path)
	if err == nil && len(parts) == 0 {
		err = fmt.Errorf("%w: the workspace itself", container.ErrExists)
	}
	if err != nil {
		return container.FileInfo{}, err
	}
	last := len(parts) - 1
	dir, err := d.folder(path, parts[:last], 0o755, true)
	if err != nil {
		return container.FileInfo{}, err
	}
	old := dir.entries[parts[last]]
	if old != nil && old.typ == container.TypeDir {
		return container.FileInfo{}, fmt.Errorf("%w: %s is a folder", container.ErrExists, path)
	}
	n := mk()
	used := d.used + int64(len(n.content))
	if old != nil {
		used -= int64(len(old.content))
	}
	if d.limit > 0 && used > d.limit {
		return container.FileInfo{}, fmt.Errorf("%w: %s", container.ErrNoSpace, path)
	}
	if !mod.IsZero() {
		n.mod = mod
	}
	d.used = used
	dir.entries[parts[last]] = n
	dir.touch()
	return n.info(path), nil
}

func (d *disk) mkdir(path string, mode fs.FileMode, mod time.Time) (container.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parts, err := split(path)
	if err != nil {
		return container.FileInfo{}, err
	}
	n, err := d.folder(path, parts, mode, true)
	if err != nil {
		return container.FileInfo{}, err
	}
	if !mod.IsZero() {
		n.mod, n.mode = mod, unixMode(mode)
	}
	return n.info(path), nil
}

func (d *disk) delete(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	parts, err := split(path)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return fmt.Errorf("%w: the workspace itself", container.ErrPath)
	}
	last := len(parts) - 1
	dir, err := d.folder(path, parts[:last], 0, false)
	if err != nil {
		if errors.Is(err, container.ErrNotFound) {
			return nil
		}
		return err
	}
	if n, ok := dir.entries[parts[last]]; ok {
		d.used -= n.weight()
		delete(dir.entries, parts[last])
		dir.touch()
	}
	return nil
}

func (n *node) weight() int64 {
	sum := int64(len(n.content))
	for _, e := range n.entries {
		sum += e.weight()
	}
	return sum
}

// list returns the entries of a folder, sorted by name.
func (d *disk) list(path string) ([]container.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(path)
	if err != nil {
		return nil, err
	}
	switch n.typ {
	case container.TypeDir:
	case container.TypeSymlink:
		return nil, fmt.Errorf("%w: %s is a link", container.ErrPath, path)
	default:
		return nil, fmt.Errorf("%w: %s is no folder", container.ErrNotFound, path)
	}
	infos := make([]container.FileInfo, 0, len(n.entries))
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		infos = append(infos, n.entries[name].info(join(path, name)))
	}
	return infos, nil
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
