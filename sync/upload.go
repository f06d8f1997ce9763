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
)

// readTries is how often a file that changes while it is read is read again.
const readTries = 3

// upload reads the files that changed and stores their content: small ones in packs, others as
// blobs. What is recorded is what was read, never what the scan saw.
type upload struct {
	*push
	group *group
	pack  *packer
	// expected is how large a single pack of all small files would be.
	expected int64
	last     bool                // store files as they are, even if they change
	sums     map[string]Sum      // of the files that are too large for memory
	again    []string            // changed while being read
	large    []string            // need a checksum before they can be sent
	blobs    map[string]struct{} // stored already
}

func (p *push) upload(ctx context.Context) error {
	u := &upload{push: p, group: newGroup(ctx, p.syncer.opts.Parallel), blobs: map[string]struct{}{}}
	u.pack = newPacker(u)
	for _, e := range p.base.entries() {
		if e.Blob != "" {
			u.blobs[e.Blob] = struct{}{}
		}
	}
	err := u.rounds()
	if err == nil {
		err = u.pack.flush()
	}
	if err != nil {
		u.group.cancel(err)
	}
	if err := u.group.wait(); err != nil {
		return err
	}
	u.pack.settle()
	u.pack.release()
	return nil
}

func (u *upload) rounds() error {
	var paths []string
	for i := range u.scan.entries {
		e := &u.scan.entries[i]
		if n := u.scan.nodes[e.Path]; !e.dirty || e.Type != TypeFile {
			continue
		} else if n.Size > u.syncer.opts.PackSize {
			u.large = append(u.large, e.Path)
			continue
		}
		u.expected += u.scan.nodes[e.Path].Size + 1024
		paths = append(paths, e.Path)
	}
	for try := 0; len(paths)+len(u.large) > 0; try++ {
		u.last = try >= readTries
		if err := sleep(u.group.ctx, backoff(try)); err != nil {
			return err
		}
		if err := u.round(paths); err != nil {
			return err
		}
		paths, u.again = u.again, nil
		slices.Sort(paths)
	}
	return nil
}

func (u *upload) round(paths []string) error {
	large := u.large
	u.large, u.sums = nil, map[string]Sum{}
	if !u.last && len(large) > 0 {
		err := u.tree.Hash(u.group.ctx, large, func(s Sum) error {
			if s.Err != nil {
				return u.unreadable(s.Path, s.Err)
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
	if err := u.tree.ReadAll(u.group.ctx, paths, u.file); err != nil {
		return fmt.Errorf("read changed files: %w", err)
	}
	return nil
}

// file stores one file, or puts it off to the next round.
func (u *upload) file(c Content) error {
	if err := context.Cause(u.group.ctx); err != nil {
		return err
	}
	if c.Err != nil {
		return u.unreadable(c.Node.Path, c.Err)
	}
	if c.Node.Size <= u.syncer.opts.PackSize {
		return u.inMemory(c)
	}
	if _, ok := u.sums[c.Node.Path]; !ok && !u.last {
		u.large = append(u.large, c.Node.Path) // grew since the scan
		return nil
	}
	return u.stream(c)
}

// unreadable leaves a file out. If it isn't gone, what is known of it is kept.
func (u *upload) unreadable(path string, err error) error {
	delete(u.scan.sigs, path)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if ctxErr := context.Cause(u.group.ctx); ctxErr != nil {
		return ctxErr
	}
	u.scan.skip(&Node{Path: path, Err: err}, err)
	return nil
}

// inMemory reads a file whole, and stores it if it did not change meanwhile.
func (u *upload) inMemory(c Content) error {
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
		return u.unreadable(c.Node.Path, err)
	}
	if ok, err := u.settled(&c, int64(n)); !ok {
		return err
	}
	buf = buf[:n]
	if small && n > 0 { // hashed with the rest of its pack, beside the reading
		return u.pack.add(u.read(&c, int64(n), [16]byte{}, [32]byte{}), buf)
	}
	e := u.read(&c, int64(n), md5.Sum(buf), sha256.Sum256(buf)) //nolint:gosec // see the import
	if n == 0 {
		return nil
	}
	e.Blob = fmt.Sprintf("%x", e.SHA256)
	return u.blob(e, buf)
}

// settled tells whether a file that was read can be stored: it didn't change, or this is the last try.
// One whose reading failed never can: what was read of it is not its content.
func (u *upload) settled(c *Content, n int64) (bool, error) {
	after, err := c.After()
	switch {
	case err != nil && u.last:
		return false, u.unreadable(c.Node.Path, err)
	case err == nil && n == c.Node.Size && signatureOf(&after) == signatureOf(&c.Node):
		return true, nil
	case !u.last:
		u.again = append(u.again, c.Node.Path)
		return false, nil
	}
	u.done.Unstable = append(u.done.Unstable, c.Node.Path)
	delete(u.scan.sigs, c.Node.Path)
	c.Node.ChangeTime = 0 // not to be trusted
	return true, nil
}

// read records what was read of a file, not yet where it is stored.
func (u *upload) read(c *Content, n int64, sumMD5 [16]byte, sum [32]byte) *Entry {
	e := u.scan.entry(c.Node.Path) // it is there: only what the scan found is read
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

// modeOf keeps the bits that were stored but not restored.
func (u *upload) modeOf(n *Node) uint32 {
	if old := u.base.entries()[n.Path]; old != nil && old.Type == TypeFile && old.Mode&0o777 == n.Mode&0o777 {
		return old.Mode
	}
	return n.Mode & 0o7777
}

// blob stores content under its SHA-256, unless a state that is alive has it already.
func (u *upload) blob(e *Entry, content []byte) error {
	name, sum := e.Blob, e.SHA256
	if _, ok := u.blobs[name]; ok {
		return nil
	}
	u.blobs[name] = struct{}{}
	return u.group.start(func(ctx context.Context) error {
		_, err := u.syncer.store.Put(ctx, u.prefix+"blobs/"+name, bytes.NewReader(content), int64(len(content)), PutOptions{SHA256: sum})
		return err
	})
}

// stream stores a file that is too large for memory. It is sent under the checksum that was
// made before; a reader that finds other bytes fails before the object is complete, since
// the name may be in use. In the last round the name is one that nothing else has.
func (u *upload) stream(c Content) error {
	sum, known := u.sums[c.Node.Path]
	name := fmt.Sprintf("%x", sum.SHA256)
	if !known {
		name = u.syncer.newID(u.syncer.now())
	}
	r := &hashingReader{r: io.LimitReader(c.Reader, c.Node.Size), md5: md5.New(), sha: sha256.New()} //nolint:gosec // see the import
	if known {
		if sum.Size != c.Node.Size {
			u.again = append(u.again, c.Node.Path)
			return nil
		}
		r.want, r.left = sum.SHA256[:], sum.Size
	}
	if _, have := u.blobs[name]; have {
		u.read(&c, sum.Size, sum.MD5, sum.SHA256).Blob = name
		return nil
	}
	err := u.syncer.store.PutStream(u.group.ctx, u.prefix+"blobs/"+name, r, c.Node.Size)
	if r.changed {
		u.again = append(u.again, c.Node.Path)
		return nil
	}
	if err != nil {
		return err
	}
	after, err := c.After()
	if err != nil && !known {
		return u.unreadable(c.Node.Path, err) // what was sent may be a part of it
	}
	// A file that was sent as it was hashed, and changed since, is not sent again: it is a true copy of a moment ago.
	if err != nil || signatureOf(&after) != signatureOf(&c.Node) || r.n != c.Node.Size {
		u.done.Unstable = append(u.done.Unstable, c.Node.Path)
		c.Node.ChangeTime = 0 // not to be trusted
	}
	u.blobs[name] = struct{}{}
	u.read(&c, r.n, [16]byte(r.md5.Sum(nil)), [32]byte(r.sha.Sum(nil))).Blob = name
	return nil
}
