package wsync

import (
	"errors"
	"fmt"
	"strings"
)

// MaxDepth is how many components a path of a workspace has at most. A Tree walks one level deeper, so that what lies
// too deep is seen and reported.
const MaxDepth = 64

// Rules of a state that no option changes.
const (
	maxPath      = 4096
	maxComponent = 255
	maxTarget    = 4096
	maxName      = 1024
	// maxPack bounds a pack, which is held in memory as a whole.
	maxPack = 64 << 20
	// stateName is the head's name. Names that begin with it belong to the sync, at the top of a workspace.
	stateName = ".sandbox-state"
)

// checkState checks a state whose files are sorted. It serves both ways: nothing that
// breaks a rule is restored, and nothing such is committed.
func checkState(s *state, opts Options) error {
	if err := checkHeader(s); err != nil {
		return err
	}
	for i := range s.Packs {
		if err := checkPack(&s.Packs[i]); err != nil {
			return fmt.Errorf("packs: %d: %w", i, err)
		}
	}
	var total int64
	tree := treeCheck{leaves: map[string]struct{}{}}
	for i := range s.Files {
		e := &s.Files[i]
		err := errors.Join(checkPath(e.Path), checkEntry(e, s))
		if err == nil && i > 0 && s.Files[i-1].Path == e.Path {
			err = errors.New("appears twice")
		}
		if err == nil && e.Size > opts.MaxBytes-total {
			err = fmt.Errorf("brings the workspace over %d bytes, the limit", opts.MaxBytes)
		}
		if err != nil {
			return fmt.Errorf("entry %q: %w", e.Path, err)
		}
		total += e.Size
		tree.add(e)
	}
	return tree.check(s.Files)
}

func checkHeader(s *state) error {
	switch {
	case s.Generation < 0:
		return errors.New("generation: negative")
	case s.Totals.Files < 0 || s.Totals.Bytes < 0:
		return errors.New("totals: negative")
	case s.Commit != "" && !isULID(s.Commit):
		return fmt.Errorf("commit: %q is not a ULID", s.Commit)
	case s.Parent != "" && !isULID(s.Parent):
		return fmt.Errorf("parent: %q is not a ULID", s.Parent)
	case len(s.Workspace) > maxName || len(s.Writer.Worker) > maxName || len(s.Writer.Job) > maxName:
		return fmt.Errorf("workspace or writer: more than %d bytes", maxName)
	}
	for _, c := range s.Parents {
		if !isULID(c) {
			return fmt.Errorf("parents: %q is not a ULID", c)
		}
	}
	return nil
}

func checkPack(k *pack) error {
	stem, _, _ := strings.Cut(k.ID, ".tar")
	if suffix := k.ID[len(stem):]; suffix != ".tar" && suffix != ".tar.zst" || !isName(stem) {
		return fmt.Errorf("id: %q is not a name of a pack", k.ID)
	}
	if k.Size < 0 || k.Size > maxPack {
		return fmt.Errorf("size: %d is not within 0 and %d", k.Size, maxPack)
	}
	return nil
}

// isName allows what wsync itself makes: letters and digits of ASCII, and nothing that means something in a key.
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// checkPath tells why a path can't be stored or restored.
func checkPath(p string) error {
	switch {
	case p == "":
		return errors.New("path is empty")
	case len(p) > maxPath:
		return fmt.Errorf("path is longer than %d bytes", maxPath)
	case strings.IndexByte(p, 0) >= 0:
		return errors.New("path holds a NUL byte")
	case strings.HasPrefix(p, stateName):
		return fmt.Errorf("names that begin with %s are reserved", stateName)
	}
	depth := 0
	for c := range strings.SplitSeq(p, "/") {
		depth++
		switch {
		case c == "" || c == "." || c == "..":
			return fmt.Errorf("path has the component %q", c)
		case len(c) > maxComponent:
			return fmt.Errorf("path has a component longer than %d bytes", maxComponent)
		}
	}
	if depth > MaxDepth {
		return fmt.Errorf("path is deeper than %d folders", MaxDepth)
	}
	return nil
}

func checkEntry(e *entry, s *state) error {
	switch {
	case e.Size < 0:
		return errors.New("size is negative")
	case e.Type == TypeSymlink && (e.Target == "" || len(e.Target) > maxTarget || strings.IndexByte(e.Target, 0) >= 0):
		return fmt.Errorf("target is empty, longer than %d bytes, or holds a NUL byte", maxTarget)
	case e.Type != TypeSymlink && e.Target != "":
		return errors.New("only a symlink has a target")
	case e.Type == TypeDir && e.Size != 0:
		return errors.New("a folder has no size")
	case e.Type != TypeFile && (e.Pack >= 0 || e.Blob != ""):
		return errors.New("only a file has content")
	case e.Type == TypeFile:
		return checkContent(e, s)
	}
	return nil
}

func checkContent(e *entry, s *state) error {
	switch {
	case e.MD5 == [16]byte{} && e.SHA256 == [32]byte{}:
		return errors.New("file has no checksum")
	case e.Pack >= 0 && e.Blob != "":
		return errors.New("file is in a pack and in a blob")
	case e.Pack >= len(s.Packs):
		return fmt.Errorf("pack %d does not exist", e.Pack)
	case e.Pack >= 0 && (e.Off < 0 || e.Off > s.Packs[e.Pack].Size || e.Size > s.Packs[e.Pack].Size-e.Off):
		return fmt.Errorf("bytes %d+%d lie outside of pack %d", e.Off, e.Size, e.Pack)
	case e.Blob != "" && !isName(e.Blob):
		return fmt.Errorf("blob: %q is not a name of a blob", e.Blob)
	case s.Layout == layoutPacked && e.Size > 0 && e.Pack < 0 && e.Blob == "":
		return errors.New("file is in no pack and no blob")
	}
	return nil
}

// treeCheck finds paths below a file or a link.
type treeCheck struct {
	leaves map[string]struct{}
}

func (t *treeCheck) add(e *entry) {
	if e.Type != TypeDir {
		t.leaves[e.Path] = struct{}{}
	}
}

func (t *treeCheck) check(files []entry) error {
	last := ""
	for i := range files {
		dir := parentOf(files[i].Path)
		if dir == last {
			continue
		}
		for d := dir; d != ""; d = parentOf(d) {
			if _, ok := t.leaves[d]; ok {
				return fmt.Errorf("entry %q: lies below %q, which is no folder", files[i].Path, d)
			}
		}
		last = dir
	}
	return nil
}

// usable tells why a state that keeps all rules can't be restored by this version.
func (s *state) usable() error {
	if s.Layout != layoutPacked && (s.Layout != "" || len(s.Files) > 0) {
		layout := s.Layout
		if layout == "" {
			layout = "mirror"
		}
		return fmt.Errorf("state %s in the layout %q: %w", s.Version, layout, ErrUnsupported)
	}
	for i := range s.Packs {
		if k := &s.Packs[i]; k.Enc != "" && k.Enc != encNone {
			return fmt.Errorf("pack %s encoded as %q: %w", k.ID, k.Enc, ErrUnsupported)
		}
	}
	return nil
}
