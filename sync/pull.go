package wsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"slipway/sync/internal/parallel"
)

// Pull restores the workspace at prefix into tree, which has to be empty. A workspace that does not exist yet is empty.
// The whole state is checked before the first entry is made. If anything fails later, the tree is incomplete and has to
// be thrown away.
//
// Errors: ErrState and ErrUnsupported for the state; ErrCorrupt, with the object whose content differs from the state;
// and those of the store and the tree.
func (s *Syncer) Pull(ctx context.Context, prefix string, tree Tree) (*Base, Pulled, error) {
	base, err := s.Open(ctx, prefix)
	if err != nil || base.state == nil {
		return base, Pulled{}, err
	}
	p := &pull{syncer: s, base: base, state: base.state}
	nodes, err := tree.WriteAll(ctx, p.entries(ctx))
	if p.err != nil {
		err = p.err // the cause: a tree may lose it
	}
	if err != nil {
		return nil, Pulled{}, fmt.Errorf("restore the workspace %s: %w", base.Prefix, err)
	}
	if err := p.remember(nodes); err != nil {
		return nil, Pulled{}, fmt.Errorf("restore the workspace %s: %w", base.Prefix, err)
	}
	return base, p.done, nil
}

// pull is one restore under way.
type pull struct {
	syncer *Syncer
	base   *Base
	state  *state
	err    error
	done   Pulled
	sent   []*entry // what was handed to the tree; nil for folders
}

// entries yields the whole workspace in a safe order: folders, files, and links last. So no component of a path is a link
// while files are written.
func (p *pull) entries(ctx context.Context) iter.Seq2[NewNode, error] {
	return func(yield func(NewNode, error) bool) {
		for _, part := range []func(func(NewNode, error) bool) bool{
			p.folders,
			func(yield func(NewNode, error) bool) bool { return p.files(ctx, yield) },
			p.links,
		} {
			if !part(yield) {
				return
			}
		}
	}
}

// folders yields every folder. A state lists a folder only if it is empty or has a mode of its own; the others are known
// from what they hold.
func (p *pull) folders(yield func(NewNode, error) bool) bool {
	seen := map[string]bool{"": true}
	var parents func(dir string) bool
	parents = func(dir string) bool {
		if seen[dir] {
			return true
		}
		seen[dir] = true
		return parents(parentOf(dir)) && p.folder(yield, dir, defaultDirMode)
	}
	for i := range p.state.Files { // sorted: a folder comes before what it holds
		e := &p.state.Files[i]
		if !parents(parentOf(e.Path)) {
			return false
		}
		if e.Type == TypeDir {
			seen[e.Path] = true
			if !p.folder(yield, e.Path, e.Mode) {
				return false
			}
		}
	}
	return true
}

func (p *pull) folder(yield func(NewNode, error) bool, path string, mode uint32) bool {
	return p.yield(yield, nil, NewNode{Path: path, Type: TypeDir, Mode: fs.FileMode(mode & 0o777)})
}

// files yields the files pack by pack, then blob by blob, while it fetches the packs that come next.
func (p *pull) files(ctx context.Context, yield func(NewNode, error) bool) bool {
	var empty, blobs []*entry
	packs := make([]packFetch, len(p.state.Packs))
	for i := range p.state.Files {
		switch e := &p.state.Files[i]; {
		case e.Type != TypeFile:
		case e.Size == 0:
			empty = append(empty, e)
		case e.Blob != "":
			blobs = append(blobs, e)
		default:
			packs[e.Pack].pack = &p.state.Packs[e.Pack]
			packs[e.Pack].entries = append(packs[e.Pack].entries, e)
		}
	}
	for _, e := range empty {
		if !p.data(yield, e, nil) {
			return false
		}
	}
	packs = slices.DeleteFunc(packs, func(f packFetch) bool { return f.pack == nil })
	for fetched, err := range parallel.Ordered(ctx, p.syncer.opts.Parallel, packs, p.fetchPack) {
		if err != nil {
			return p.fail(yield, err)
		}
		for i, e := range fetched.entries {
			if !p.data(yield, e, fetched.content[i]) {
				return false
			}
		}
	}
	return p.blobs(ctx, blobs, yield)
}

// data yields a file whose content is in memory, verified.
func (p *pull) data(yield func(NewNode, error) bool, e *entry, data []byte) bool {
	return p.file(yield, e, bytes.NewReader(data), data)
}

func (p *pull) file(yield func(NewNode, error) bool, e *entry, content io.Reader, data []byte) bool {
	p.done.Files++
	p.done.Bytes += e.Size
	return p.yield(yield, e, NewNode{
		Path: e.Path, Type: TypeFile, Mode: fs.FileMode(e.Mode & 0o777), Size: e.Size,
		ModTime: time.Unix(0, e.ModTime), Content: content, Data: data,
	})
}

func (p *pull) links(yield func(NewNode, error) bool) bool {
	for i := range p.state.Files {
		if e := &p.state.Files[i]; e.Type == TypeSymlink {
			if !p.yield(yield, e, NewNode{Path: e.Path, Type: TypeSymlink, Mode: defaultLinkMode, Size: e.Size, Target: e.Target}) {
				return false
			}
		}
	}
	return true
}

func (p *pull) yield(yield func(NewNode, error) bool, e *entry, n NewNode) bool {
	p.sent = append(p.sent, e)
	return yield(n, nil)
}

func (p *pull) fail(yield func(NewNode, error) bool, err error) bool {
	if p.err == nil {
		p.err = err
	}
	yield(NewNode{}, err)
	return false
}

// remember keeps the stats of the written files. The latest change time among them serves as the file system's clock at
// the last write; no one else writes before Pull returns.
func (p *pull) remember(nodes []Node) error {
	if len(nodes) != len(p.sent) {
		return fmt.Errorf("the tree made %d entries of %d", len(nodes), len(p.sent))
	}
	clock := int64(0)
	for i := range nodes {
		clock = max(clock, nodes[i].ChangeTime)
	}
	p.base.sigs = make(map[string]signature, p.done.Files)
	for i, e := range p.sent {
		if e == nil || e.Type != TypeFile {
			continue
		}
		if nodes[i].Size != e.Size {
			return fmt.Errorf("the tree holds %d bytes of %q, not %d", nodes[i].Size, e.Path, e.Size)
		}
		if sig := signatureOf(&nodes[i]); sig.trustworthy(clock) {
			p.base.sigs[e.Path] = sig
		}
	}
	return nil
}

// corrupt is the error for an object whose content differs from the state.
func corrupt(key, format string, args ...any) error {
	return fmt.Errorf("object %s: %w: %s", key, ErrCorrupt, fmt.Sprintf(format, args...))
}

// missing turns ErrNotFound, for an object that the state names, into ErrCorrupt.
func missing(key string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return corrupt(key, "it is missing")
	}
	return err
}
