package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// sendPaths streams paths to the box while the answers are read. wait returns when it is done.
func (r *request) sendPaths(paths []string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := bufio.NewWriterSize(r.Stream, wire.MaxData)
		for _, path := range paths {
			var e wire.Enc
			e.Str(path)
			if err := wire.WriteRecord(w, &e); err != nil {
				r.Fail(err) // no effect if the stream has ended by itself
				return
			}
		}
		if w.Flush() == nil {
			_ = r.CloseWrite() // a lost connection has ended the stream already
		}
	}()
	return func() { <-done }
}

func (f files) Hash(ctx context.Context, paths []string, fn func(container.Sum) error) error {
	r, err := f.request(ctx, wire.KindHash, nil)
	if err != nil {
		return err
	}
	wait := r.sendPaths(paths)
	err = r.sums(paths, fn)
	_, err = r.finish(err)
	wait()
	return err
}

func (r *request) sums(paths []string, fn func(container.Sum) error) error {
	in := bufio.NewReaderSize(r, wire.MaxData)
	var buf []byte
	for _, path := range paths {
		d, err := readRecord(in, &buf)
		if errors.Is(err, io.EOF) {
			return wire.ErrEnded // finish says why
		}
		if err != nil {
			return err
		}
		status := wire.GetStatus(d)
		sum := container.Sum{Path: path, Size: d.Int()}
		copy(sum.MD5[:], d.Raw(len(sum.MD5)))
		copy(sum.SHA256[:], d.Raw(len(sum.SHA256)))
		if err := d.Err(); err != nil {
			return err
		}
		if sum.Err = errorOf(status); sum.Err != nil {
			sum = container.Sum{Path: path, Err: sum.Err}
		}
		if err := fn(sum); err != nil {
			return err
		}
	}
	return nil
}

func (f files) ReadAll(ctx context.Context, paths []string, fn func(container.FileContent) error) error {
	r, err := f.request(ctx, wire.KindReadAll, nil)
	if err != nil {
		return err
	}
	wait := r.sendPaths(paths)
	c := &contents{in: bufio.NewReaderSize(r, wire.MaxData)}
	for range paths {
		if err = c.one(fn); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = wire.ErrEnded // finish says why
	}
	_, err = r.finish(err)
	wait()
	return err
}

// contents reads the answer to ReadAll.
type contents struct {
	in   *bufio.Reader
	buf  []byte
	left []byte // unread rest of the current piece
	last bool   // the piece that ends the file was read
	fail error  // why a file could not be read to its end
}

func (c *contents) one(fn func(container.FileContent) error) error {
	info, err := c.info()
	if err != nil {
		return err
	}
	if info.Err != nil {
		return fn(container.FileContent{Info: info, Err: info.Err})
	}
	c.left, c.last = nil, false
	var after *container.FileInfo
	finish := func() (container.FileInfo, error) {
		if after == nil {
			if err := c.skip(); err != nil {
				return container.FileInfo{}, err
			}
			i, err := c.info()
			if err != nil {
				return container.FileInfo{}, err
			}
			after = &i
		}
		return *after, after.Err
	}
	err = fn(container.FileContent{Info: info, Reader: c, After: finish})
	if err == nil && c.fail == nil {
		if _, ferr := finish(); after == nil { // else the error is the file's, and fn has been able to see it
			err = ferr
		}
	}
	if c.fail != nil {
		return c.fail // the answer broke off: its End says why, whatever fn has made of that
	}
	return err
}

// Read reads the current file.
func (c *contents) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		if c.last {
			return 0, io.EOF
		}
		d, err := readRecord(c.in, &c.buf)
		if errors.Is(err, io.EOF) {
			err = wire.ErrEnded
		}
		if err != nil {
			c.fail = err
			return 0, err // not io.ErrUnexpectedEOF, by which a reader takes the file for one that shrank
		}
		c.left = d.Rest()
		c.last = len(c.left) == 0
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *contents) skip() error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{c})
	return err
}

func (c *contents) info() (container.FileInfo, error) {
	d, err := readRecord(c.in, &c.buf)
	if err != nil {
		return container.FileInfo{}, err
	}
	status := wire.GetStatus(d)
	info := fileInfo(d)
	info.Err = errorOf(status)
	return info, d.Err()
}

func (f files) WriteAll(ctx context.Context, entries iter.Seq2[container.NewFile, error]) ([]container.FileInfo, error) {
	r, err := f.request(ctx, wire.KindWriteAll, nil)
	if err != nil {
		return nil, err
	}
	var infos []container.FileInfo
	answered := make(chan error, 1)
	go func() {
		var err error
		infos, err = r.written()
		answered <- err
	}()
	count, err := r.sendEntries(entries)
	if err != nil && !errors.Is(err, wire.ErrEnded) {
		_ = r.SendCancel() // a lost connection has ended the stream already
	}
	badAnswer := <-answered
	if _, err = r.finish(err); err != nil {
		return nil, fmt.Errorf("write files: %w", err)
	}
	if badAnswer != nil { // the end of the stream was there before it was read
		return nil, fmt.Errorf("%w: write files: %w", container.ErrBoxLost, badAnswer)
	}
	if len(infos) != count {
		return nil, fmt.Errorf("%w: it answered %d of %d files", container.ErrBoxLost, len(infos), count)
	}
	return infos, nil
}

// written collects the answers to WriteAll, which don't come in order. Its error is wire.ErrProtocol; finish tells how the
// stream ended.
func (r *request) written() ([]container.FileInfo, error) {
	var infos []container.FileInfo
	in := bufio.NewReaderSize(r, wire.MaxData)
	var buf []byte
	for {
		d, err := wire.ReadRecord(in, &buf)
		if err != nil {
			return infos, nil
		}
		index := d.Uint()
		info := fileInfo(d)
		if d.Err() != nil || index > 1<<26 {
			r.Fail(wire.ErrProtocol)
			return infos, wire.ErrProtocol
		}
		for uint64(len(infos)) <= index {
			infos = append(infos, container.FileInfo{})
		}
		infos[index] = info
	}
}

func (r *request) sendEntries(entries iter.Seq2[container.NewFile, error]) (int, error) {
	w := bufio.NewWriterSize(r.Stream, wire.MaxData)
	count := 0
	for n, err := range entries {
		if err != nil {
			return count, err
		}
		if err := sendEntry(w, n); err != nil {
			return count, err
		}
		count++
	}
	if err := w.Flush(); err != nil {
		return count, err
	}
	return count, r.CloseWrite()
}

func sendEntry(w *bufio.Writer, n container.NewFile) error {
	var e wire.Enc
	entry := wire.Entry{Path: n.Path, Type: byte(n.Type), Mode: unixMode(n.Mode), Target: n.Target, HasTime: !n.ModTime.IsZero()}
	if entry.HasTime {
		entry.ModTime = n.ModTime.UnixNano()
	}
	if n.Type == container.TypeFile {
		entry.Size = n.Size
	}
	entry.Put(&e)
	if err := wire.WriteRecord(w, &e); err != nil {
		return err
	}
	if entry.Size == 0 {
		return nil
	}
	if n.Content == nil {
		return fmt.Errorf("%s: %w: content missing", n.Path, io.ErrUnexpectedEOF)
	}
	got, err := io.CopyN(w, n.Content, entry.Size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w: %d of %d bytes", n.Path, io.ErrUnexpectedEOF, got, entry.Size)
	}
	return err
}
