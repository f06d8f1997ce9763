package docker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
)

var errBadHeader = errors.New("bad header in attached stream")

// stderrKept bounds what is kept of the box's stderr: its first bytes, which say why it did not come up.
const stderrKept = 4 << 10

// demux is the box's stdout taken from an attached stream, in which the engine
// puts a header of eight bytes before each piece. The library's stdcopy pushes into
// a Writer; a pipe behind it would cost a goroutine and a copy of every byte.
type demux struct {
	r    io.Reader
	left uint32 // of the piece that is being read
	kind stdcopy.StdType

	mu     sync.Mutex
	stderr []byte
}

// Read returns bytes of stdout. The end of the stream in the middle of a piece is io.ErrUnexpectedEOF.
func (d *demux) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		for d.left == 0 {
			if err := d.header(); err != nil {
				return 0, err
			}
		}
		if d.kind == stdcopy.Stdout {
			n, err := d.r.Read(p[:min(len(p), int(d.left))])
			d.left -= uint32(n) //nolint:gosec // n is at most left
			return n, midPiece(err, d.left)
		}
		if err := d.keep(); err != nil {
			return 0, err
		}
	}
}

func (d *demux) header() error {
	var h [8]byte
	if _, err := io.ReadFull(d.r, h[:]); err != nil {
		return err
	}
	d.kind, d.left = stdcopy.StdType(h[0]), binary.BigEndian.Uint32(h[4:])
	if h[1]|h[2]|h[3] != 0 || d.kind != stdcopy.Stdout && d.kind != stdcopy.Stderr && d.kind != stdcopy.Systemerr {
		return fmt.Errorf("%w: %x", errBadHeader, h)
	}
	return nil
}

// keep takes a piece of stderr off the stream.
func (d *demux) keep() error {
	var buf [512]byte
	for d.left > 0 {
		n, err := d.r.Read(buf[:min(len(buf), int(d.left))])
		d.left -= uint32(n) //nolint:gosec // n is at most left
		d.mu.Lock()
		d.stderr = append(d.stderr, buf[:min(n, stderrKept-len(d.stderr))]...)
		d.mu.Unlock()
		if err != nil {
			return midPiece(err, d.left)
		}
	}
	return nil
}

func midPiece(err error, left uint32) error {
	if errors.Is(err, io.EOF) && left > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// stderrHead returns the beginning of what the box has printed to stderr.
func (d *demux) stderrHead() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.stderr)
}
