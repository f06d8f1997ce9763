package filestore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	wsync "slipway/sync"
)

// trailer is the end of an object's file, after the content: itself as JSON, and the footer "\n<length of the JSON>\n", where
// the length has eight hexadecimal digits. It comes last since the size of a stream is known only then, and content that
// begins at 0 can be looked at with other tools: tar reads a pack.
type trailer struct {
	ETag string `json:"etag"`
	// Size of the content. A file that lost its middle doesn't have it.
	Size     int64             `json:"size"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

const (
	footerSize = len("\n00000000\n")
	// maxTrailer bounds the JSON, and with it metadata. S3 takes 2 KiB of metadata.
	maxTrailer = 64 << 10
)

// write copies content to an empty file, and t behind it.
func (t *trailer) write(f io.Writer, content io.Reader) (err error) {
	if t.Size, err = io.Copy(f, content); err != nil {
		return err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if len(text) > maxTrailer {
		return fmt.Errorf("metadata of %d bytes, want at most %d", len(text), maxTrailer)
	}
	_, err = fmt.Fprintf(f, "%s\n%08x\n", text, len(text))
	return err
}

// read reads t from a file of size bytes.
func (t *trailer) read(f io.ReaderAt, size int64) error {
	at := size - int64(footerSize)
	if at < 0 {
		return damaged("it has %d bytes", size)
	}
	footer := make([]byte, footerSize)
	if _, err := f.ReadAt(footer, at); err != nil {
		return err
	}
	length, err := strconv.ParseUint(strings.TrimSpace(string(footer)), 16, 32)
	if err != nil || length > maxTrailer || int64(length) > at {
		return damaged("it ends in %q", footer)
	}
	at -= int64(length)
	text := make([]byte, length)
	if _, err := f.ReadAt(text, at); err != nil {
		return err
	}
	if err := json.Unmarshal(text, t); err != nil {
		return damaged("its trailer: %w", err)
	}
	if t.Size != at || t.ETag == "" {
		return damaged("it has %d bytes of content, and the trailer says %d", at, t.Size)
	}
	return nil
}

// damaged is a file that is no whole object: a power cut, or another program, was there.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: the object's file is damaged: %w", wsync.ErrCorrupt, fmt.Errorf(format, args...))
}

func lowerKeys(metadata map[string]string) map[string]string {
	lower := make(map[string]string, len(metadata))
	for k, v := range metadata {
		lower[strings.ToLower(k)] = v
	}
	return lower
}

// checked is a body that fails at its end if it is not the announced one.
type checked struct {
	body io.Reader
	left int64 // of the announced size
	size int64
	sum  hash.Hash // nil: none is known
	want [32]byte
}

func newChecked(body io.Reader, size int64, sum [32]byte) *checked {
	c := &checked{body: body, left: size, size: size, want: sum}
	if sum != [32]byte{} {
		c.sum = sha256.New()
	}
	return c
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.left -= int64(n)
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	switch {
	case !errors.Is(err, io.EOF):
	case c.left != 0:
		err = fmt.Errorf("the body has %d bytes, not %d", c.size-c.left, c.size)
	case c.sum != nil && [32]byte(c.sum.Sum(nil)) != c.want:
		err = errors.New("the body is not the one of PutOptions.SHA256")
	}
	return n, err
}

// until is a reader that fails once its context has ended.
type until struct {
	ctx  context.Context
	body io.Reader
}

// Read implements io.Reader.
func (u until) Read(p []byte) (int, error) {
	if err := alive(u.ctx); err != nil {
		return 0, err
	}
	n, err := u.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read the body: %w", err)
	}
	return n, err
}
