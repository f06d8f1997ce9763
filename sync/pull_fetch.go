package wsync

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // only for states that know nothing better
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"slipway/internal/pause"
	"slipway/sync/internal/parallel"
)

const (
	// rangeGap is the gap up to which two ranges of a pack are fetched as one.
	rangeGap = 64 << 10
	// A pack of at most smallPack bytes, or one with more than maxSpans ranges, is cheaper to fetch whole.
	smallPack = 256 << 10
	maxSpans  = 64
	// bodyTries is how often a body that breaks off is asked for again.
	bodyTries = 4
)

// packFetch is a pack and the entries that are wanted from it.
type packFetch struct {
	pack    *pack
	entries []*entry
}

// fetchedPack holds the verified content of entries, in the order of their offsets.
type fetchedPack struct {
	entries []*entry
	content [][]byte
}

// fetchPack gets a pack whole or, if most of it is dead, only the ranges that are wanted. It verifies everything, in
// parallel with the writing of earlier packs.
func (p *pull) fetchPack(ctx context.Context, f packFetch) (fetchedPack, error) {
	key := p.base.Prefix + "packs/" + f.pack.ID
	slices.SortFunc(f.entries, func(a, b *entry) int { return int(a.Off - b.Off) })
	spans := f.spans()
	out := fetchedPack{entries: f.entries, content: make([][]byte, 0, len(f.entries))}
	next := 0
	for _, sp := range spans {
		data, err := p.fetch(ctx, key, sp.off, sp.end-sp.off, f.pack.Size)
		if err != nil {
			return fetchedPack{}, missing(key, err)
		}
		if whole := sp.end-sp.off == f.pack.Size; whole && f.pack.SHA256 != [32]byte{} && sha256.Sum256(data) != f.pack.SHA256 {
			return fetchedPack{}, corrupt(key, "its SHA-256 differs from the state's")
		}
		for ; next < len(f.entries) && f.entries[next].Off+f.entries[next].Size <= sp.end; next++ {
			e := f.entries[next]
			content := data[e.Off-sp.off:][:e.Size]
			if !matches(e, content) {
				return fetchedPack{}, corrupt(key, "the checksum of %q differs", e.Path)
			}
			out.content = append(out.content, content)
		}
	}
	return out, nil
}

// span is a range of a pack.
type span struct{ off, end int64 }

// spans merges the wanted entries, sorted by offset, into ranges. Entries that overlap share a range, so each lies within
// one. If at least half of the pack is wanted, the range is the whole pack.
func (f *packFetch) spans() []span {
	var out []span
	live := int64(0)
	for _, e := range f.entries {
		live += e.Size
		if n := len(out); n > 0 && e.Off <= out[n-1].end+rangeGap {
			out[n-1].end = max(out[n-1].end, e.Off+e.Size)
			continue
		}
		out = append(out, span{e.Off, e.Off + e.Size})
	}
	if live*2 >= f.pack.Size || len(out) > maxSpans || f.pack.Size <= smallPack {
		return []span{{0, f.pack.Size}}
	}
	return out
}

// fetch reads a range of an object whole, trying again when the body breaks off.
func (p *pull) fetch(ctx context.Context, key string, off, length, size int64) (data []byte, err error) {
	for try := range bodyTries {
		if !pause.For(ctx, backoff(try)) {
			return nil, context.Cause(ctx)
		}
		var obj *Object
		if off == 0 && length == size {
			obj, err = p.syncer.store.Get(ctx, key)
		} else {
			obj, err = p.syncer.store.GetRange(ctx, key, off, length)
		}
		if err != nil {
			return nil, fmt.Errorf("read the object %s: %w", key, err)
		}
		data = make([]byte, length)
		n, readErr := io.ReadFull(obj.Body, data)
		more, _ := obj.Body.Read(make([]byte, 1))
		obj.Body.Close()
		switch {
		case readErr == nil && more == 0:
			return data, nil
		case readErr == nil:
			return nil, corrupt(key, "it is longer than %d bytes", off+length)
		case errors.Is(readErr, io.EOF) && n == int(obj.Size), errors.Is(readErr, io.ErrUnexpectedEOF) && n == int(obj.Size):
			return nil, corrupt(key, "it ends %d bytes early", length-int64(n))
		}
		err = fmt.Errorf("read the object %s: %w: %w", key, ErrUnavailable, readErr)
	}
	return nil, err
}

func matches(e *entry, content []byte) bool {
	if e.SHA256 != [32]byte{} {
		return sha256.Sum256(content) == e.SHA256
	}
	return md5.Sum(content) == e.MD5 //nolint:gosec // see the import
}

// blobs yields large files one after the other, straight from the store.
func (p *pull) blobs(ctx context.Context, entries []*entry, yield func(NewNode, error) bool) bool {
	small := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.Size > p.syncer.opts.PackSize })
	large := slices.DeleteFunc(entries, func(e *entry) bool { return e.Size <= p.syncer.opts.PackSize })
	i := 0
	for content, err := range parallel.Ordered(ctx, p.syncer.opts.Parallel, small, p.fetchBlob) {
		if err != nil {
			return p.fail(yield, err)
		}
		if !p.data(yield, small[i], content) {
			return false
		}
		i++
	}
	for _, e := range large {
		r := p.openBlob(ctx, e)
		ok := p.file(yield, e, r, nil)
		r.close()
		if !ok {
			return false
		}
	}
	return true
}

func (p *pull) blobKey(e *entry) string { return p.base.Prefix + "blobs/" + e.Blob }

func (p *pull) fetchBlob(ctx context.Context, e *entry) ([]byte, error) {
	key := p.blobKey(e)
	data, err := p.fetch(ctx, key, 0, e.Size, e.Size)
	if err != nil {
		return nil, missing(key, err)
	}
	if !matches(e, data) {
		return nil, corrupt(key, "the checksum of %q differs", e.Path)
	}
	return data, nil
}

// blobReader streams one large blob. After a body broke off it asks for the rest. It gives out the last bytes only if the
// checksum is right.
type blobReader struct {
	p     *pull
	ctx   context.Context
	e     *entry
	body  io.ReadCloser
	off   int64
	tries int
	sum   hash.Hash
	want  []byte
}

func (p *pull) openBlob(ctx context.Context, e *entry) *blobReader {
	r := &blobReader{p: p, ctx: ctx, e: e, sum: sha256.New(), want: e.SHA256[:]}
	if e.SHA256 == [32]byte{} {
		r.sum, r.want = md5.New(), e.MD5[:] //nolint:gosec // see the import
	}
	return r
}

// Read implements io.Reader. It also notes its error in the pull, since a tree may lose it.
func (r *blobReader) Read(b []byte) (int, error) {
	n, err := r.read(b)
	if err != nil && !errors.Is(err, io.EOF) && r.p.err == nil {
		r.p.err = err
	}
	return n, err
}

func (r *blobReader) read(b []byte) (int, error) {
	key := r.p.blobKey(r.e)
	for {
		if r.off == r.e.Size {
			return 0, io.EOF // the checksum was right, or the last bytes were not given out
		}
		if err := r.open(key); err != nil {
			return 0, missing(key, err)
		}
		n, err := r.body.Read(b[:min(int64(len(b)), r.e.Size-r.off)])
		if n > 0 {
			r.sum.Write(b[:n])
			r.off += int64(n)
			r.tries = 0
			if r.off == r.e.Size && !bytes.Equal(r.sum.Sum(nil), r.want) {
				return 0, corrupt(key, "the checksum of %q differs", r.e.Path)
			}
			return n, nil
		}
		if err == nil {
			continue
		}
		r.close()
		if r.tries++; r.tries >= bodyTries {
			if errors.Is(err, io.EOF) {
				return 0, corrupt(key, "it ends %d bytes early", r.e.Size-r.off)
			}
			return 0, fmt.Errorf("read the object %s: %w: %w", key, ErrUnavailable, err)
		}
		if !pause.For(r.ctx, backoff(r.tries)) {
			return 0, context.Cause(r.ctx)
		}
	}
}

func (r *blobReader) open(key string) error {
	if r.body != nil {
		return nil
	}
	obj, err := r.p.syncer.store.GetRange(r.ctx, key, r.off, r.e.Size-r.off)
	if err != nil {
		return fmt.Errorf("read the object %s: %w", key, err)
	}
	r.body = obj.Body
	return nil
}

func (r *blobReader) close() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}
