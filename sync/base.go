package wsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Base is what a Pull restored and what a Push compares with; Pull and Open return it. It remembers the stats of the
// restored files, so that a Push reads only what changed. A successful Push moves it on to the new head. One Push at a
// time uses it.
type Base struct {
	// Prefix of the workspace in the store.
	Prefix string
	// Commit that was restored; empty for a workspace that does not exist yet.
	Commit string

	state *state // nil: there is none
	etag  string
	sigs  map[string]signature
	index map[string]*entry
}

// Empty reports whether nothing is stored that a Pull would restore: there is no workspace yet, or its last state has no files.
func (b *Base) Empty() bool { return len(b.files()) == 0 }

// files are the entries that were pulled, sorted by path.
func (b *Base) files() []entry {
	if b.state == nil {
		return nil
	}
	return b.state.Files
}

// entries indexes the state's files by path.
func (b *Base) entries() map[string]*entry {
	if b.index == nil && b.state != nil {
		b.index = make(map[string]*entry, len(b.state.Files))
		for i := range b.state.Files {
			b.index[b.state.Files[i].Path] = &b.state.Files[i]
		}
	}
	return b.index
}

// Open reads the head at prefix and restores nothing. A Push without a Pull compares with it. Errors: ErrState, ErrUnsupported and those of the store.
func (s *Syncer) Open(ctx context.Context, prefix string) (*Base, error) {
	prefix, err := cleanPrefix(prefix)
	if err != nil {
		return nil, err
	}
	head, err := s.readHead(ctx, prefix)
	if errors.Is(err, ErrNotFound) {
		return &Base{Prefix: prefix}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := head.state.usable(); err != nil {
		return nil, fmt.Errorf("read the workspace's head %s: %w", prefix+stateName, err)
	}
	return &Base{Prefix: prefix, Commit: head.state.Commit, state: head.state, etag: head.etag}, nil
}

// head is the head object, read whole.
type head struct {
	etag   string
	commit string // of the metadata
	state  *state
}

func (s *Syncer) readHead(ctx context.Context, prefix string) (head, error) {
	return s.readState(ctx, "head", prefix+stateName)
}

// readState reads the object key, which is the workspace's head or a version of it.
func (s *Syncer) readState(ctx context.Context, what, key string) (head, error) {
	obj, err := s.store.Get(ctx, key)
	if err != nil {
		return head{}, fmt.Errorf("read the workspace's %s %s: %w", what, key, err)
	}
	data, err := io.ReadAll(io.LimitReader(obj.Body, s.opts.MaxStateBytes+1))
	if err = errors.Join(err, obj.Body.Close()); err != nil {
		return head{}, fmt.Errorf("read the workspace's %s %s: %w: %w", what, key, ErrUnavailable, err)
	}
	state, err := parseState(data, s.opts)
	if err != nil {
		return head{}, fmt.Errorf("read the workspace's %s %s: %w", what, key, err)
	}
	return head{etag: obj.ETag, commit: obj.Metadata["commit"], state: state}, nil
}

// cleanPrefix checks a workspace's place in the store, and ends it with a slash. A prefix that it accepts is the same
// key on every server; some servers turn "a//b" or "a/../b" into the key of another workspace.
func cleanPrefix(prefix string) (string, error) {
	trimmed := strings.TrimSuffix(prefix, "/")
	for part := range strings.SplitSeq(trimmed, "/") {
		if part == "" || part[0] == '.' || len(part) > 200 || !isKeyPart(part) {
			return "", fmt.Errorf("workspace prefix %q: use parts of letters, digits, '.', '_', '-', '=' and '@', not beginning with a dot, joined by '/'", prefix)
		}
	}
	if len(trimmed) > 700 {
		return "", fmt.Errorf("workspace prefix %q: longer than 700 bytes", prefix)
	}
	return trimmed + "/", nil
}

func isKeyPart(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("._-=@", c) < 0 {
			return false
		}
	}
	return true
}
