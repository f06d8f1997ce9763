package docker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moby/moby/api/pkg/stdcopy"
)

func frame(kind byte, s string) []byte {
	h := [8]byte{kind}
	binary.BigEndian.PutUint32(h[4:], uint32(len(s)))
	return append(h[:], s...)
}

func TestDemux(t *testing.T) {
	whole := bytes.Join([][]byte{frame(1, "he"), frame(2, "oops"), frame(1, ""), frame(1, "llo"), frame(3, "!")}, nil)
	tests := []struct {
		name string
		in   []byte
		out  string
		err  error
	}{
		{"whole", whole, "hello", nil},
		{"nothing", nil, "", nil},
		{"cut in a header", whole[:5], "", io.ErrUnexpectedEOF},
		{"cut in stdout", whole[:9], "h", io.ErrUnexpectedEOF},
		{"cut in stderr", whole[:20], "he", io.ErrUnexpectedEOF},
		{"no header", []byte("GET / HTTP/1.1\r\n"), "", errBadHeader},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(tt.in), "byte by byte": iotest.OneByteReader(bytes.NewReader(tt.in))} {
			d := &demux{r: r}
			got, err := io.ReadAll(d)
			if string(got) != tt.out || !errors.Is(err, tt.err) {
				t.Errorf("%s, %s: got %q, %v, want %q, %v", tt.name, name, got, err, tt.out, tt.err)
			}
			if tt.name == "whole" && d.stderrHead() != "oops!" {
				t.Errorf("stderr: got %q", d.stderrHead())
			}
		}
	}
}

func TestDemuxBoundsStderr(t *testing.T) {
	in := bytes.Join([][]byte{frame(2, strings.Repeat("x", 1<<20)), frame(1, "ok")}, nil)
	d := &demux{r: bytes.NewReader(in)}
	got, err := io.ReadAll(d)
	if string(got) != "ok" || err != nil || len(d.stderrHead()) != stderrKept {
		t.Errorf("got %q, %v and %d bytes of stderr, want ok and %d", got, err, len(d.stderrHead()), stderrKept)
	}
}

// FuzzDemux: on every stream that the engine's own library reads, the same stdout.
func FuzzDemux(f *testing.F) {
	f.Add(append(frame(1, "a"), frame(2, "b")...), uint8(3))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 1, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, chunk uint8) {
		for rest := in; len(rest) >= 8; {
			size := int(binary.BigEndian.Uint32(rest[4:]))
			if size > len(rest)-8 {
				return // the library makes room for all of the piece, up to 4 GiB
			}
			rest = rest[8+size:]
		}
		got, err := io.ReadAll(iotest.DataErrReader(&demux{r: &chunks{in, int(chunk%16) + 1}}))
		var want bytes.Buffer
		if _, wantErr := stdcopy.StdCopy(&want, io.Discard, bytes.NewReader(in)); wantErr != nil {
			return
		}
		// The library ignores a cut piece, and kind 0, which no engine sends; the demux must not.
		if err == nil && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got %q, want %q", got, want.Bytes())
		}
	})
}

type chunks struct {
	b []byte
	n int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.b)
	c.b = c.b[n:]
	return n, nil
}
