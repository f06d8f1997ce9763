package wsync

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the seed format's checksum
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"
)

// packer gathers small files in a plain tar, and sends it when it is full. People without this program can unpack a tar;
// a Pull uses the offsets of the state and never reads a header.
type packer struct {
	up      *upload
	free    chan []byte
	buf     []byte // nil: wait for one
	index   int
	entries []*entry          // in buf
	sums    map[int]*[32]byte // of packs by index; complete when the uploads are
}

func newPacker(u *upload) *packer {
	p := &packer{up: u, free: make(chan []byte, u.syncer.opts.Parallel+1), sums: map[int]*[32]byte{}}
	for range cap(p.free) {
		p.free <- nil // made when needed
	}
	return p
}

// room returns the place in the pack for the n bytes of a file, which add then finds there. It waits while as many packs
// as allowed are in memory.
func (p *packer) room(n int64) ([]byte, error) {
	if p.buf == nil {
		select {
		case p.buf = <-p.free:
		case <-p.up.group.Context().Done():
			return nil, context.Cause(p.up.group.Context())
		}
		if p.buf == nil {
			p.buf = p.fresh()
		}
	}
	at := len(p.buf) + tarBlock
	p.buf = slices.Grow(p.buf, tarBlock+int(n))
	return p.buf[at : at+int(n)], nil
}

// fresh returns a buffer for a whole pack: growing step by step would copy and clear it twice.
func (p *packer) fresh() []byte {
	opts := &p.up.syncer.opts
	need := int(min(opts.PackSize+opts.SmallFile, p.up.expected)) + 16<<10
	if old, _ := packBuffers.Get().(*[]byte); old != nil && cap(*old) >= need {
		return (*old)[:0]
	}
	return make([]byte, 0, need)
}

// add appends the file whose content the caller read into room's buffer, and notes its place in the entry.
func (p *packer) add(e *entry, content []byte) error {
	if len(p.entries) == 0 {
		p.index = len(p.up.packs)
		p.up.packs = append(p.up.packs, pack{ID: p.up.syncer.newID(p.up.syncer.now()) + ".tar", Enc: encNone})
	}
	if at := len(p.buf); putTarHeader(p.buf[at:at+tarBlock], e, len(content)) {
		p.buf = p.buf[:at+tarBlock+len(content)]
	} else {
		header, err := longTarHeader(e, len(content))
		if err != nil {
			return fmt.Errorf("pack %q: %w", e.Path, err)
		}
		content = slices.Clone(content) // the header is longer than what room left for it
		p.buf = append(append(p.buf, header...), content...)
	}
	e.Pack, e.Off = p.index, int64(len(p.buf)-len(content))
	p.buf = append(p.buf, tarZeros[:-len(p.buf)&(tarBlock-1)]...)
	p.entries = append(p.entries, e)
	if int64(len(p.buf)) >= p.up.syncer.opts.PackSize {
		return p.flush()
	}
	return nil
}

// flush sends what was gathered.
func (p *packer) flush() error {
	if len(p.entries) == 0 {
		return nil
	}
	buf, entries, index := append(p.buf, tarZeros[:]...), p.entries, p.index
	p.buf, p.entries = nil, nil
	p.up.packs[index].Size = int64(len(buf))
	sum := new([32]byte)
	p.sums[index] = sum
	key := p.up.prefix + "packs/" + p.up.packs[index].ID
	return p.up.group.Start(func(ctx context.Context) error {
		*sum = sha256.Sum256(buf)
		var hashed sync.WaitGroup
		hashed.Go(func() { // while the store takes the pack: nobody needs the checksums before all are stored
			for _, e := range entries {
				content := buf[e.Off:][:e.Size]
				e.MD5, e.SHA256 = md5.Sum(content), sha256.Sum256(content) //nolint:gosec // see the import
			}
		})
		_, err := p.up.syncer.store.Put(ctx, key, bytes.NewReader(buf), int64(len(buf)), PutOptions{SHA256: *sum})
		hashed.Wait()
		if err == nil {
			p.free <- buf[:0]
		} // else the buffer is not used again: a call that was given up may still read it
		return err
	})
}

// release gives the buffers to the next sync, once all uploads are done. Fresh memory of their size costs as much time as
// filling it.
func (p *packer) release() {
	close(p.free)
	for buf := range p.free {
		if buf != nil {
			packBuffers.Put(&buf)
		}
	}
}

// packBuffers holds the *[]byte of packs that are stored. The garbage collector empties it.
var packBuffers sync.Pool

// recordSums notes the checksums of the packs, once all are stored.
func (p *packer) recordSums() {
	for i, sum := range p.sums {
		p.up.packs[i].SHA256 = *sum
	}
}

var errChanged = errors.New("file changed while it was sent")

// hashingReader hashes the bytes that pass. If want is set, it gives out the last bytes only if all of them together have
// that checksum.
type hashingReader struct {
	r        io.Reader
	md5, sha hash.Hash
	n        int64
	want     []byte
	left     int64
	changed  bool
}

// Read implements io.Reader.
func (h *hashingReader) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	h.md5.Write(b[:n])
	h.sha.Write(b[:n])
	h.n += int64(n)
	if h.want == nil {
		return n, err
	}
	h.left -= int64(n)
	ended := err != nil || h.left == 0
	if ended && (errors.Is(err, io.EOF) || err == nil) && (h.left != 0 || !bytes.Equal(h.sha.Sum(nil), h.want)) {
		h.changed = true
		return 0, errChanged
	}
	return n, err
}
