//go:build linux

package workspace

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/container/supervisor/internal/wire"
)

// send writes the paths that a bulk operation reads.
func (q request) send(paths ...string) request {
	q.t.Helper()
	w := bufio.NewWriter(q.Stream)
	for _, p := range paths {
		var e wire.Enc
		e.Str(p)
		if err := wire.WriteRecord(w, &e); err != nil {
			q.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		q.t.Fatal(err)
	}
	if err := q.CloseWrite(); err != nil {
		q.t.Fatal(err)
	}
	return q
}

func TestHash(t *testing.T) {
	r := setup(t)
	r.makeTree("a/", "a/f", "g", "l -> g")
	big := strings.Repeat("0123456789", 50_000)
	r.do(func(dir string) error { return os.WriteFile(filepath.Join(dir, "big"), []byte(big), 0o644) })
	paths := []string{"a/f", "no", "a", "l", "../x", "big", "a/f"}
	content := map[string]string{"a/f": "content of a/f", "big": big}
	codes := map[string]wire.Code{"no": wire.CodeNotFound, "a": wire.CodeNotRegular, "l": wire.CodeNotRegular, "../x": wire.CodePath}
	data, st, _ := r.open(wire.KindHash, nil).send(paths...).end()
	if st.Code != wire.CodeOK {
		t.Fatalf("got %+v, want OK", st)
	}
	i := 0
	records(t, data, func(d *wire.Dec) {
		p := paths[i]
		i++
		st, size := wire.GetStatus(d), d.Int()
		m, s := d.Raw(md5.Size), d.Raw(sha256.Size)
		if st.Code != codes[p] {
			t.Errorf("%s: got %+v, want code %d", p, st, codes[p])
		}
		if st.Code != wire.CodeOK {
			return
		}
		wm, ws := md5.Sum([]byte(content[p])), sha256.Sum256([]byte(content[p]))
		if size != int64(len(content[p])) || !slices.Equal(m, wm[:]) || !slices.Equal(s, ws[:]) {
			t.Errorf("%s: got size %d and other sums, want those of its %d bytes", p, size, len(content[p]))
		}
	})
	if i != len(paths) {
		t.Errorf("got %d answers, want %d", i, len(paths))
	}
}

// readAnswer is one file of ReadAll as it travels.
type readAnswer struct {
	before, after wire.Info
	code          wire.Code
	content       string
}

func answers(t *testing.T, data []byte) (all []readAnswer) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(string(data)))
	var buf []byte
	next := func() *wire.Dec {
		d, err := wire.ReadRecord(in, &buf)
		if err != nil {
			t.Fatalf("read record: %v", err)
		}
		return d
	}
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return all
		}
		var a readAnswer
		d := next()
		a.code, a.before = wire.GetStatus(d).Code, wire.GetInfo(d)
		for a.code == wire.CodeOK {
			piece := next().Rest()
			if len(piece) == 0 {
				d = next()
				a.code, a.after = wire.GetStatus(d).Code, wire.GetInfo(d)
				break
			}
			a.content += string(piece)
		}
		all = append(all, a)
	}
}

func TestReadAll(t *testing.T) {
	r := setup(t)
	r.makeTree("a/", "a/f", "empty", "l -> empty")
	big := strings.Repeat("0123456789", 50_000) // several records
	r.do(func(dir string) error { return os.WriteFile(filepath.Join(dir, "big"), []byte(big), 0o644) })
	r.do(func(dir string) error { return os.Truncate(filepath.Join(dir, "empty"), 0) })
	data, st, _ := r.open(wire.KindReadAll, nil).send("a/f", "no", "empty", "l", "big", "a").end()
	if st.Code != wire.CodeOK {
		t.Fatalf("got %+v, want OK", st)
	}
	want := []readAnswer{
		{content: "content of a/f"},
		{code: wire.CodeNotFound},
		{},
		{code: wire.CodeNotRegular},
		{content: big},
		{code: wire.CodeNotRegular},
	}
	got := answers(t, data)
	if len(got) != len(want) {
		t.Fatalf("got %d answers, want %d", len(got), len(want))
	}
	for i, a := range got {
		if a.code != want[i].code || a.content != want[i].content {
			t.Errorf("answer %d: got code %d and %d bytes, want %d and %d", i, a.code, len(a.content), want[i].code, len(want[i].content))
		}
		if a.code == wire.CodeOK && a.before != a.after {
			t.Errorf("answer %d: got %+v before and %+v after, want both the same", i, a.before, a.after)
		}
	}
}

// A file that grows while it is read is sent as large as it was said to be, however that fits into the buffer.
func TestCopyRecordsOfGrowingFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const content = "0123456789"
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		size int64
		buf  int
		want string
	}{{0, 4, ""}, {3, 4, "012"}, {4, 4, "0123"}, {7, 4, "0123 456"}, {8, 4, "0123 4567"}, {10, 4, "0123 4567 89"}, {20, 4, "0123 4567 89"}} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		rerr, werr := copyRecords(w, int(f.Fd()), tt.size, make([]byte, tt.buf))
		if err := errors.Join(rerr, werr, w.Flush()); err != nil {
			t.Fatalf("%d bytes: %v", tt.size, err)
		}
		var pieces []string
		records(t, out.Bytes(), func(d *wire.Dec) { pieces = append(pieces, string(d.Rest())) })
		if got := strings.Join(pieces, " "); got != tt.want {
			t.Errorf("%d bytes of %d: got %q, want %q", tt.size, len(content), got, tt.want)
		}
	}
}

// A file that changes while it is read gives at most the bytes that it had at first, and another Info afterwards.
func TestReadAllOfChangingFile(t *testing.T) {
	r := setup(t)
	const size = 3 * wire.Window
	file := filepath.Join(r.dir, "f")
	r.do(func(string) error { return os.WriteFile(file, make([]byte, size), 0o644) })
	q := r.open(wire.KindReadAll, nil).send("f")
	_, first, err := q.Next() // it has begun; the rest waits for this reader
	if err != nil {
		t.Fatal(err)
	}
	data := slices.Clone(first)
	r.do(func(string) error {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("more")
		return err
	})
	rest, _, _ := q.end()
	got := answers(t, append(data, rest...))
	if len(got) != 1 || len(got[0].content) != size {
		t.Fatalf("got %d files of %d bytes, want 1 of %d", len(got), len(got[0].content), size)
	}
	if got[0].before.Size != size || got[0].after.Size != size+4 {
		t.Errorf("sizes: got %d before, %d after; want %d, %d", got[0].before.Size, got[0].after.Size, size, size+4)
	}
}
