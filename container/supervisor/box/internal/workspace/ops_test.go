//go:build linux

package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

func TestWriteReadStat(t *testing.T) {
	r := setup(t)
	content := strings.Repeat("slipway\n", 40_000) // more than a window
	if st := r.write("a/b/c", content, 0o640); st.Code != wire.CodeOK {
		t.Fatalf("write: got %+v, want OK", st)
	}
	data, st, d := r.call(wire.KindRead, func(e *wire.Enc) { e.Str("a/b/c"); e.Int(int64(len(content))) })
	if st.Code != wire.CodeOK || string(data) != content {
		t.Errorf("read: got %d bytes, %+v; want %d bytes, OK", len(data), st, len(content))
	}
	read := wire.GetInfo(d)
	if read.Size != int64(len(content)) || read.Mode != 0o640 || read.Type != 'f' || read.Path != "a/b/c" {
		t.Errorf("read: got %+v, want the file of mode 640", read)
	}
	_, st, d = r.call(wire.KindStat, path("a/b/c"))
	if got := wire.GetInfo(d); st.Code != wire.CodeOK || got != read {
		t.Errorf("stat: got %+v, %+v; want %+v", got, st, read)
	}
	var on unix.Stat_t
	if err := unix.Stat(filepath.Join(r.dir, "a/b/c"), &on); err != nil || int(on.Uid) != r.server.uid || int(on.Gid) != r.server.gid {
		t.Errorf("owner: got %d:%d, %v; want the commands' user", on.Uid, on.Gid, err)
	}
}

// A write shows at its end, all at once, and puts a new file in the place of the old one.
func TestWriteIsAtomic(t *testing.T) {
	r := setup(t)
	if st := r.write("f", "old", 0o644); st.Code != wire.CodeOK {
		t.Fatal(st)
	}
	held, err := os.Open(filepath.Join(r.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	q := r.open(wire.KindWrite, pathMode("f", 0o4755))
	if _, err := q.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, eventually.Patience, "the new content lies beside the old", func() bool {
		list, _ := os.ReadDir(r.dir)
		return len(list) == 2
	})
	if b, _ := os.ReadFile(filepath.Join(r.dir, "f")); string(b) != "old" {
		t.Errorf("in the middle of a write: got %q, want the old content", b)
	}
	_ = q.CloseWrite()
	if _, st, _ := q.end(); st.Code != wire.CodeOK {
		t.Fatalf("write: got %+v, want OK", st)
	}
	b, _ := os.ReadFile(filepath.Join(r.dir, "f"))
	info, err := os.Stat(filepath.Join(r.dir, "f"))
	if err != nil || string(b) != "new" || info.Mode()&os.ModeSetuid == 0 {
		t.Errorf("after a write: got %q, mode %v; want new and setuid", b, info.Mode())
	}
	old := make([]byte, 3)
	if _, err := held.Read(old); err != nil || string(old) != "old" {
		t.Errorf("the replaced file: got %q, %v; want it unchanged", old, err)
	}
	if list, _ := os.ReadDir(r.dir); len(list) != 1 {
		t.Errorf("left in the folder: got %v, want f alone", list)
	}
}

// A canceled write ends at once and leaves nothing, neither of the new content nor beside it.
func TestCanceledWrite(t *testing.T) {
	r := setup(t)
	q := r.open(wire.KindWrite, pathMode("f", 0o644))
	if _, err := q.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, eventually.Patience, "the write has begun", func() bool {
		list, _ := os.ReadDir(r.dir)
		return len(list) == 1
	})
	if err := q.SendCancel(); err != nil {
		t.Fatal(err)
	}
	if _, st, _ := q.end(); st.Code != wire.CodeCanceled {
		t.Errorf("got %+v, want canceled", st)
	}
	if list, _ := os.ReadDir(r.dir); len(list) != 0 {
		t.Errorf("left: got %v, want nothing", list)
	}
}

// Operations that wait for the worker never hold up those that don't: it may need one of these to go on.
func TestSlots(t *testing.T) {
	r := setup(t)
	var waiting []request
	for i := range maxBulk + 2 {
		q := r.open(wire.KindWrite, pathMode("f"+string(rune('a'+i)), 0o644))
		if _, err := q.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, q)
	}
	temps := func() int {
		list, _ := os.ReadDir(r.dir)
		return len(list)
	}
	eventually.True(t, eventually.Patience, "as many as there are slots have begun", func() bool { return temps() == maxBulk })
	within(t, "stat beside waiting writes", func() {
		if _, st, _ := r.call(wire.KindStat, path(".")); st.Code != wire.CodeOK {
			t.Errorf("stat: got %+v, want OK", st)
		}
		if _, st, _ := r.call(wire.KindMkdir, pathMode("dir", 0o755)); st.Code != wire.CodeOK {
			t.Errorf("mkdir: got %+v, want OK", st)
		}
		if _, st, _ := r.call(wire.KindDelete, path("dir")); st.Code != wire.CodeOK {
			t.Errorf("delete: got %+v, want OK", st)
		}
	})
	if n := temps(); n != maxBulk {
		t.Errorf("writes at once: got %d, want %d: the others wait for a slot", n, maxBulk)
	}
	for _, q := range waiting {
		_ = q.CloseWrite()
		if _, st, _ := q.end(); st.Code != wire.CodeOK {
			t.Errorf("write: got %+v, want OK", st)
		}
	}
}

func TestErrors(t *testing.T) {
	r := setup(t)
	r.do(func(dir string) error {
		for _, d := range []string{"dir", "closed"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
				return err
			}
		}
		for name, target := range map[string]string{"link": "file", "out": "/etc", "inside": "dir"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("12345678901"), 0o666); err != nil {
			return err
		}
		return unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666)
	})
	r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, "dir"), 0o777) })
	r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, "closed"), 0) })
	read := func(limit int64) func(string) wire.Status {
		return func(p string) wire.Status {
			data, st, _ := r.call(wire.KindRead, func(e *wire.Enc) { e.Str(p); e.Int(limit) })
			if st.Code == wire.CodeTooLarge && len(data) > 0 {
				t.Errorf("read %s: got %d bytes before the error, want none", p, len(data))
			}
			return st
		}
	}
	write := func(p string) wire.Status { return r.write(p, "x", 0o644) }
	of := func(kind wire.Kind) func(string) wire.Status {
		return func(p string) wire.Status { _, st, _ := r.call(kind, path(p)); return st }
	}
	mkdir := func(p string) wire.Status { _, st, _ := r.call(wire.KindMkdir, pathMode(p, 0o755)); return st }
	for _, tt := range []struct {
		name string
		op   func(string) wire.Status
		path string
		want wire.Code
	}{
		{"read at its limit", read(11), "file", wire.CodeOK},
		{"read over its limit", read(10), "file", wire.CodeTooLarge},
		{"read without limit", read(0), "file", wire.CodeOK},
		{"read missing", read(0), "no", wire.CodeNotFound},
		{"read below a file", read(0), "file/x", wire.CodeNotFound},
		{"read folder", read(0), "dir", wire.CodeNotRegular},
		{"read link", read(0), "link", wire.CodeNotRegular},
		{"read FIFO without a writer", read(0), "fifo", wire.CodeNotRegular},
		{"read through a link that leaves", read(0), "out/passwd", wire.CodePath},
		{"read through a link that stays", read(0), "inside/x", wire.CodePath},
		{"read above", read(0), "../x", wire.CodePath},
		{"read the root", read(0), ".", wire.CodePath},
		{"write over a folder", write, "dir", wire.CodeExists},
		{"write below a file", write, "file/x/y", wire.CodeExists},
		{"write through a link", write, "out/x", wire.CodePath},
		{"write over a link", write, "link", wire.CodeOK},
		{"mkdir of what exists", mkdir, "dir", wire.CodeOK},
		{"mkdir over a file", mkdir, "file", wire.CodeExists},
		{"mkdir of the root", mkdir, ".", wire.CodeOK},
		{"mkdir above", mkdir, "../x", wire.CodePath},
		{"delete missing", of(wire.KindDelete), "no/no", wire.CodeOK},
		{"delete the root", of(wire.KindDelete), ".", wire.CodePath},
		{"delete through a link", of(wire.KindDelete), "out/passwd", wire.CodePath},
		{"list a file", of(wire.KindList), "file", wire.CodeNotFound},
		{"stat FIFO", of(wire.KindStat), "fifo", wire.CodeOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, tt.name, func() {
				if st := tt.op(tt.path); st.Code != tt.want {
					t.Errorf("got code %d (%s), want %d", st.Code, st.Message, tt.want)
				}
			})
		})
	}
	if os.Geteuid() == 0 { // else the folder is the test's own
		if st := write("closed/x"); st.Code != wire.CodePermission {
			t.Errorf("write in a closed folder: got %+v, want permission denied", st)
		}
	}
}

// A file that is too large is refused before its first byte.
func TestReadOfLargeFile(t *testing.T) {
	r := setup(t)
	r.makeTree("f")
	r.do(func(dir string) error { return os.Truncate(filepath.Join(dir, "f"), 4*wire.MaxData) })
	data, st, _ := r.call(wire.KindRead, func(e *wire.Enc) { e.Str("f"); e.Int(3 * wire.MaxData) })
	if st.Code != wire.CodeTooLarge || len(data) != 0 {
		t.Errorf("got %d bytes, %+v; want none, too large", len(data), st)
	}
}

// A malformed request is an error of that request alone.
func TestMalformedRequest(t *testing.T) {
	r := setup(t)
	for kind := range operations {
		q := r.open(kind, func(e *wire.Enc) { e.Raw([]byte{255, 255}) })
		_ = q.CloseWrite()
		within(t, "malformed request", func() { q.end() })
	}
	if r.server.Serves(wire.KindExec) || !r.server.Serves(wire.KindWalk) {
		t.Error("Serves: want it true for operations on files only")
	}
	if _, st, _ := r.call(wire.KindStat, path(".")); st.Code != wire.CodeOK {
		t.Errorf("stat afterwards: got %+v, want OK", st)
	}
}

// A file that grows while it is read is refused when it passes the limit.
func TestReadOfGrowingFile(t *testing.T) {
	r := setup(t)
	file := filepath.Join(r.dir, "f")
	r.do(func(string) error { return os.WriteFile(file, bytes.Repeat([]byte("x"), 2*wire.Window), 0o644) })
	q := r.open(wire.KindRead, func(e *wire.Enc) { e.Str("f"); e.Int(3 * wire.Window) })
	if _, _, err := q.Next(); err != nil { // it has begun; the rest waits for this reader
		t.Fatal(err)
	}
	if f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	} else if _, err := f.Write(make([]byte, 2*wire.Window)); err != nil {
		t.Fatal(err)
	} else {
		_ = f.Close()
	}
	if _, st, _ := q.end(); st.Code != wire.CodeTooLarge {
		t.Errorf("got %+v, want too large", st)
	}
}
