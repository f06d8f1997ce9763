package wsync

import (
	"context"
	"crypto/md5" //nolint:gosec // the seed format's checksum; SHA-256 decides
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// signature is what stat tells about a file whose content is known. The content counts as unchanged if all four are
// equal. Measured: size and mtime nearly always miss a rename over the file and a time that was put back; with ctime a
// quick rename is missed; with the inode nothing was.
type signature struct {
	size, mtime, ctime int64
	inode              uint64
}

func signatureOf(n *Node) signature {
	return signature{n.Size, n.ModTime, n.ChangeTime, n.Inode}
}

// racyGuard is how old a file's times have to be when it is looked at. Within one tick of the file system's clock, 1 to
// 10 ms, a second change leaves the same times, so the signature of a younger file proves nothing.
const racyGuard = int64(20 * time.Millisecond)

// trustworthy tells whether the signature will differ after any later change, if the file system's clock was at least now
// when it was taken. One that is not trustworthy is not kept, so that the next push reads the file again.
func (s signature) trustworthy(now int64) bool {
	return s.ctime != 0 && max(s.ctime, s.mtime) < now-racyGuard
}

// scan is what a walk of the tree found.
type scan struct {
	entries []entry         // sorted; files without content yet
	nodes   map[string]Node // of files
	sigs    map[string]signature
	clock   int64 // lower bound of the file system's clock at the end
	skipped []string
	// protected are paths that could not be looked at: what is known of them is kept.
	protected []string
	bytes     int64
	names     int64 // bytes of paths and targets
}

// scanTree walks tree. It skips what can't be stored and notes the reason; over a limit it fails.
func scanTree(ctx context.Context, tree Tree, opts Options) (*scan, error) {
	s := &scan{nodes: map[string]Node{}, sigs: map[string]signature{}}
	filled := map[string]bool{} // folders that hold something
	tooDeep := ""
	err := tree.Walk(ctx, func(n Node) error {
		if tooDeep != "" && strings.HasPrefix(n.Path, tooDeep) {
			return nil
		}
		if err := storable(&n); err != nil {
			s.skip(&n, err)
			if n.Type == TypeDir {
				tooDeep = n.Path + "/"
			}
			return nil
		}
		s.add(&n)
		filled[parentOf(n.Path)] = true
		return s.within(opts)
	})
	if err != nil {
		return nil, fmt.Errorf("scan the workspace: %w", err)
	}
	s.entries = slices.DeleteFunc(s.entries, func(e entry) bool {
		return e.Mode == defaultDirMode && filled[e.Path] // only a folder holds something
	})
	slices.SortFunc(s.entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return s, nil
}

// storable tells why an entry can't be part of a state.
func storable(n *Node) error {
	if err := checkPath(n.Path); err != nil {
		return err
	}
	switch n.Type {
	case TypeFile, TypeDir:
	case TypeSymlink:
		if n.Err == nil && (n.Target == "" || len(n.Target) > maxTarget) {
			return fmt.Errorf("link's target is empty or longer than %d bytes", maxTarget)
		}
	default:
		if n.Err == nil {
			return errors.New("socket, pipe or device")
		}
	}
	return n.Err
}

func (s *scan) skip(n *Node, err error) {
	if n.Err != nil {
		if errors.Is(n.Err, ErrNotFound) {
			return // gone since it was listed
		}
		s.protected = append(s.protected, n.Path)
	}
	s.skipped = append(s.skipped, fmt.Sprintf("%q: %v", n.Path, err))
}

func (s *scan) add(n *Node) {
	s.clock = max(s.clock, n.ChangeTime)
	e := entry{Path: n.Path, Type: n.Type, Mode: n.Mode & 0o7777, Pack: -1}
	switch n.Type {
	case TypeFile:
		e.Size, e.ModTime, e.dirty = n.Size, n.ModTime, true
		s.nodes[n.Path] = *n
		s.bytes += n.Size
		if sig := signatureOf(n); sig.trustworthy(s.clock) {
			s.sigs[n.Path] = sig
		}
	case TypeSymlink:
		e.Target, e.Size, e.Mode = n.Target, int64(len(n.Target)), defaultLinkMode
		e.MD5 = md5.Sum([]byte(n.Target)) //nolint:gosec // see the import
	}
	s.names += int64(len(e.Path) + len(e.Target))
	s.entries = append(s.entries, e)
}

func (s *scan) within(opts Options) error {
	if len(s.entries) > opts.MaxEntries {
		return fmt.Errorf("%w: more than %d entries (Options.MaxEntries)", ErrTooLarge, opts.MaxEntries)
	}
	if s.names > opts.MaxStateBytes {
		return fmt.Errorf("%w: paths of more than %d bytes, as the state would have (Options.MaxStateBytes)", ErrTooLarge, opts.MaxStateBytes)
	}
	if s.bytes > opts.MaxBytes {
		return fmt.Errorf("%w: more than %d bytes (Options.MaxBytes)", ErrTooLarge, opts.MaxBytes)
	}
	return nil
}

// isProtected tells whether path is one that could not be looked at, or below it.
func (s *scan) isProtected(path string) bool {
	for _, p := range s.protected {
		if path == p || len(path) > len(p) && path[len(p)] == '/' && path[:len(p)] == p {
			return true
		}
	}
	return false
}

// resolve settles what of the scan is known from base without being sent: first by
// signature, then, for files of the same size, by a checksum made where the file is.
func (s *scan) resolve(ctx context.Context, base *Base, tree Tree) error {
	var hash []string
	known := base.entries()
	for i := range s.entries {
		e := &s.entries[i]
		old := known[e.Path]
		if old == nil || old.Type != e.Type {
			continue
		}
		if e.Mode&0o777 == old.Mode&0o777 {
			e.Mode = old.Mode
		}
		if e.Type != TypeFile {
			e.extra = old.extra
			continue
		}
		n := s.nodes[e.Path]
		switch sig, ok := base.sigs[e.Path]; {
		case ok && sig == signatureOf(&n):
			e.adopt(old)
		case e.Size == old.Size:
			hash = append(hash, e.Path)
		}
	}
	if len(hash) == 0 {
		return nil
	}
	err := tree.Hash(ctx, hash, func(sum Sum) error {
		s.settle(&sum, known[sum.Path])
		return nil
	})
	if err != nil {
		return fmt.Errorf("hash changed files: %w", err)
	}
	return nil
}

// settle compares a file's checksum with old, base's entry of that path.
func (s *scan) settle(sum *Sum, old *entry) {
	e := s.entry(sum.Path)
	if sum.Err != nil || e == nil || old == nil {
		return // reading it will tell
	}
	now := entry{Size: sum.Size, MD5: sum.MD5, SHA256: sum.SHA256}
	if sameContent(&now, old) {
		e.adopt(old)
	}
}

// adopt takes over what is known of a file's content.
func (e *entry) adopt(old *entry) {
	e.Size, e.MD5, e.SHA256 = old.Size, old.MD5, old.SHA256
	e.Pack, e.Off, e.Blob, e.extra = old.Pack, old.Off, old.Blob, old.extra
	e.dirty = false
}

// entry finds a path by binary search. It reads nothing but paths: the checksums of other entries may be written meanwhile.
func (s *scan) entry(path string) *entry {
	i, ok := sort.Find(len(s.entries), func(i int) int { return strings.Compare(path, s.entries[i].Path) })
	if !ok {
		return nil
	}
	return &s.entries[i]
}

// dropUnread removes the files that were gone or unreadable when they should have been read.
func (s *scan) dropUnread() {
	s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return e.Type == TypeFile && e.dirty })
}

// keepProtected puts base's entries back for paths that could not be looked at.
func (s *scan) keepProtected(base *Base) {
	if len(s.protected) == 0 || base.state == nil {
		return
	}
	for i := range base.state.Files {
		if e := &base.state.Files[i]; s.isProtected(e.Path) && s.entry(e.Path) == nil {
			s.entries = append(s.entries, *e)
		}
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
}
