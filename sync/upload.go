package wsync

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the seed format's checksum
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"slipway/internal/pause"
	"slipway/sync/internal/parallel"
)

// readTries is how often a file that changes while it is read is read again.
const readTries = 3

// upload reads the files that changed and stores their content: small ones in packs, others as blobs. An entry records
// what was read, never what the scan saw. The files are read in rounds; one that is not settled comes again in the next:
//
//	what happened to the file              rounds 1 to 3                     last round
//	─────────────────────────────────────  ────────────────────────────────  ──────────────────────────────
//	read, and the same afterwards          stored                            stored
//	changed while it was read              next round                        stored as read; unstable
//	can't be looked at after the reading   next round                        unreadable
//	can't be hashed, opened or read        unreadable                        unreadable
//	large, without a checksum              hashed, and read, next round      stored under a name of its own
//	large, not what was hashed             next round, hashed again          (nothing is hashed)
//	large, sent as hashed, changed since   stored as hashed; unstable        (nothing is hashed)
//
// An unstable file is named in Pushed.Unstable and read again by the next push. An unreadable one keeps what base knows
// of it and is named in Pushed.Skipped, unless it is gone.
//
// All methods run in the goroutine that called Push: a Tree calls back one file after the other.
type upload struct {
	*push
	group *parallel.Group
	pack  *packer
	// expected is how large a single pack of all small files would be.
	expected  int64
	lastRound bool
	sums      map[string]Sum      // checksums of large files, made at the start of the round
	nextRound []string            // files that were not settled in this one
	unhashed  []string            // large files that need a checksum first
	blobs     map[string]struct{} // names of blobs that the store has, or that are on their way
}

func (p *push) upload(ctx context.Context) error {
	u := &upload{push: p, group: parallel.NewGroup(ctx, p.syncer.opts.Parallel), blobs: map[string]struct{}{}}
	u.pack = newPacker(u)
	for _, e := range p.base.entries() {
		if e.Blob != "" {
			u.blobs[e.Blob] = struct{}{}
		}
	}
	err := u.readInRounds() //nolint:contextcheck // it uses the context of the group, which is below ctx
	if err == nil {
		err = u.pack.flush()
	}
	if err != nil {
		u.group.Cancel(err)
	}
	if err := u.group.Wait(); err != nil {
		return err
	}
	u.pack.recordSums()
	u.pack.release()
	return nil
}

func (u *upload) readInRounds() error {
	var paths []string
	for i := range u.scan.entries {
		e := &u.scan.entries[i]
		if !e.dirty || e.Type != TypeFile {
			continue
		}
		size := u.scan.nodes[e.Path].Size
		if size > u.syncer.opts.PackSize {
			u.unhashed = append(u.unhashed, e.Path)
			continue
		}
		u.expected += size + 1024
		paths = append(paths, e.Path)
	}
	for round := 0; len(paths)+len(u.unhashed) > 0; round++ {
		u.lastRound = round >= readTries
		if !pause.For(u.group.Context(), backoff(round)) {
			return context.Cause(u.group.Context())
		}
		if err := u.readOnce(paths); err != nil {
			return err
		}
		paths, u.nextRound = u.nextRound, nil
		slices.Sort(paths)
	}
	return nil
}

// readOnce is one round: it hashes the large files, then reads all.
func (u *upload) readOnce(paths []string) error {
	large := u.unhashed
	u.unhashed, u.sums = nil, map[string]Sum{}
	if !u.lastRound && len(large) > 0 {
		err := u.tree.Hash(u.group.Context(), large, func(s Sum) error {
			if s.Err != nil {
				u.unreadable(s.Path, s.Err)
				return nil
			}
			u.sums[s.Path] = s
			return nil
		})
		if err != nil {
			return fmt.Errorf("hash large files: %w", err)
		}
		large = slices.DeleteFunc(large, func(p string) bool { _, ok := u.sums[p]; return !ok })
	}
	paths = append(paths, large...)
	if len(paths) == 0 {
		return nil
	}
	if err := u.tree.ReadAll(u.group.Context(), paths, u.storeFile); err != nil {
		return fmt.Errorf("read changed files: %w", err)
	}
	return nil
}

// storeFile stores one file, or puts it off to the next round.
func (u *upload) storeFile(c Content) error {
	if err := context.Cause(u.group.Context()); err != nil {
		return err
	}
	if c.Err != nil {
		u.unreadable(c.Node.Path, c.Err)
		return nil
	}
	if c.Node.Size <= u.syncer.opts.PackSize {
		return u.storeFromMemory(c)
	}
	if _, ok := u.sums[c.Node.Path]; !ok && !u.lastRound {
		u.unhashed = append(u.unhashed, c.Node.Path) // it grew since the scan
		return nil
	}
	return u.storeStream(c)
}

// unreadable leaves a file out. If it isn't gone, base's entry of it is kept. The context may be what ended the reading:
// then the push fails in the end, whatever was left out.
func (u *upload) unreadable(path string, err error) {
	delete(u.scan.sigs, path)
	u.scan.skip(&Node{Path: path, Err: err}, err)
}

// storeFromMemory reads a file whole, and stores it if it did not change meanwhile.
func (u *upload) storeFromMemory(c Content) error {
	small := c.Node.Size < u.syncer.opts.SmallFile
	var buf []byte
	if small {
		var err error
		if buf, err = u.pack.room(c.Node.Size); err != nil {
			return err
		}
	} else {
		buf = make([]byte, c.Node.Size)
	}
	n, err := io.ReadFull(c.Reader, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		u.unreadable(c.Node.Path, err)
		return nil
	}
	if !u.storable(&c, int64(n)) {
		return nil
	}
	buf = buf[:n]
	if small && n > 0 { // its checksums are made with those of the whole pack, beside the reading
		return u.pack.add(u.recordEntry(&c, int64(n), [16]byte{}, [32]byte{}), buf)
	}
	e := u.recordEntry(&c, int64(n), md5.Sum(buf), sha256.Sum256(buf)) //nolint:gosec // see the import
	if n == 0 {
		return nil
	}
	e.Blob = fmt.Sprintf("%x", e.SHA256)
	return u.putBlob(e, buf)
}

// storable tells whether n bytes that were read of a file can be stored. If not, it has put the file off, or left it out.
func (u *upload) storable(c *Content, n int64) bool {
	after, err := c.After()
	switch {
	case err != nil && u.lastRound: // the reading failed: what was read of the file is not its content
		u.unreadable(c.Node.Path, err)
		return false
	case err == nil && n == c.Node.Size && signatureOf(&after) == signatureOf(&c.Node):
		return true
	case !u.lastRound:
		u.nextRound = append(u.nextRound, c.Node.Path)
		return false
	}
	u.unstable(c)
	return true
}

// unstable names a file whose stored content is not what it holds by now. Without a change time its signature is not
// kept, so that the next push reads it again.
func (u *upload) unstable(c *Content) {
	u.done.Unstable = append(u.done.Unstable, c.Node.Path)
	c.Node.ChangeTime = 0
}

// recordEntry records what was read of a file. Where it is stored comes later.
func (u *upload) recordEntry(c *Content, n int64, sumMD5 [16]byte, sum [32]byte) *entry {
	e := u.scan.entry(c.Node.Path) // it is there: only paths of the scan are read
	e.Size, e.ModTime, e.MD5, e.SHA256 = n, c.Node.ModTime, sumMD5, sum
	e.Mode = u.modeOf(&c.Node)
	e.Pack, e.Off, e.Blob, e.extra, e.dirty = -1, 0, "", nil, false
	delete(u.scan.sigs, e.Path)
	if sig := signatureOf(&c.Node); sig.trustworthy(u.scan.clock) {
		u.scan.sigs[e.Path] = sig
	}
	u.done.Files++
	u.done.Bytes += n
	return e
}

// modeOf is the file's mode. Bits that were stored and not restored are kept while the others are as they were.
func (u *upload) modeOf(n *Node) uint32 {
	if old := u.base.entries()[n.Path]; old != nil && old.Type == TypeFile && old.Mode&0o777 == n.Mode&0o777 {
		return old.Mode
	}
	return n.Mode & 0o7777
}

// putBlob stores content under its SHA-256, unless the store has it, or will have it, by that name.
func (u *upload) putBlob(e *entry, content []byte) error {
	name, sum := e.Blob, e.SHA256
	if _, ok := u.blobs[name]; ok {
		return nil
	}
	u.blobs[name] = struct{}{}
	return u.group.Start(func(ctx context.Context) error {
		_, err := u.syncer.store.Put(ctx, u.prefix+"blobs/"+name, bytes.NewReader(content), int64(len(content)), PutOptions{SHA256: sum})
		return err
	})
}

// storeStream stores a file that is too large for memory under the checksum that was made before. That name may be in
// use, so hashingReader fails before the object is complete if other bytes come. In the last round nothing is hashed
// before, and the blob gets a name that nothing else has.
func (u *upload) storeStream(c Content) error {
	sum, hashed := u.sums[c.Node.Path]
	if hashed && sum.Size != c.Node.Size {
		u.nextRound = append(u.nextRound, c.Node.Path)
		return nil
	}
	r := &hashingReader{r: io.LimitReader(c.Reader, c.Node.Size), md5: md5.New(), sha: sha256.New()} //nolint:gosec // see the import
	name := u.syncer.newID(u.syncer.now())
	if hashed {
		name = fmt.Sprintf("%x", sum.SHA256)
		r.want, r.left = sum.SHA256[:], sum.Size
	}
	if _, have := u.blobs[name]; have {
		u.recordEntry(&c, sum.Size, sum.MD5, sum.SHA256).Blob = name
		return nil
	}
	err := u.syncer.store.PutStream(u.group.Context(), u.prefix+"blobs/"+name, r, c.Node.Size)
	if r.changed {
		u.nextRound = append(u.nextRound, c.Node.Path)
		return nil
	}
	if err != nil {
		return err
	}
	after, err := c.After()
	if err != nil && !hashed {
		u.unreadable(c.Node.Path, err) // what was sent may be a part of it
		return nil
	}
	// A file that was sent as it was hashed, and changed since, is not sent again: it is a true copy of a moment ago.
	if err != nil || signatureOf(&after) != signatureOf(&c.Node) || r.n != c.Node.Size {
		u.unstable(&c)
	}
	u.blobs[name] = struct{}{}
	u.recordEntry(&c, r.n, [16]byte(r.md5.Sum(nil)), [32]byte(r.sha.Sum(nil))).Blob = name
	return nil
}
