//go:build linux

package workspace

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// writeAll sends entries with their contents, and returns the infos by index.
func (r *rig) writeAll(entries []wire.Entry, contents map[string]string) (map[uint64]wire.Info, wire.Status) {
	r.t.Helper()
	q := r.open(wire.KindWriteAll, nil)
	done := make(chan struct{})
	go func() { // the answers come meanwhile
		defer close(done)
		w := bufio.NewWriter(q.Stream)
		for _, n := range entries {
			var e wire.Enc
			n.Put(&e)
			if wire.WriteRecord(w, &e) != nil {
				return
			}
			if _, err := w.WriteString(contents[n.Path]); err != nil {
				return
			}
		}
		if w.Flush() == nil {
			_ = q.CloseWrite()
		}
	}()
	data, st, _ := q.end()
	<-done
	infos := map[uint64]wire.Info{}
	records(r.t, data, func(d *wire.Dec) { index := d.Uint(); infos[index] = wire.GetInfo(d) })
	return infos, st
}

// A folder gets its mode and time at the end: before, it must be writable, and new files change its time.
func TestWriteAll(t *testing.T) {
	r := setup(t)
	r.makeTree("old", "f", "l2 -> /etc/passwd", "keep/", "keep/in")
	r.do(func(dir string) error { return os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "hard")) })
	when := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC).UnixNano()
	entries := []wire.Entry{
		{Path: "ro", Type: 'd', Mode: 0o555, ModTime: when, HasTime: true},
		{Path: "ro/sub", Type: 'd', Mode: 0o500, ModTime: when, HasTime: true},
		{Path: "ro/sub/f", Type: 'f', Mode: 0o640, Size: 6},
		{Path: "f", Type: 'f', Mode: 0o4755, Size: 3, ModTime: when, HasTime: true},
		{Path: "l2", Type: 'f', Mode: 0o600},
		{Path: "l", Type: 'l', Target: "../x", ModTime: when, HasTime: true},
		{Path: "keep", Type: 'd', Mode: 0o700},
		{Path: "new/on/the/way", Type: 'f', Mode: 0o644, Size: 1},
		{Path: "old", Type: 'd', Mode: 0o755}, // in the place of a file
	}
	infos, st := r.writeAll(entries, map[string]string{"ro/sub/f": "inside", "f": "new", "new/on/the/way": "x"})
	if st.Code != wire.CodeOK || len(infos) != len(entries) {
		t.Fatalf("got %d entries, %+v; want %d, OK", len(infos), st, len(entries))
	}
	for i, n := range entries {
		got := infos[uint64(i)]
		_, _, d := r.call(wire.KindStat, path(n.Path))
		if now := wire.GetInfo(d); got != now {
			t.Errorf("%s: got %+v, Stat says %+v", n.Path, got, now)
		}
		if got.Path != n.Path || got.Type != n.Type || got.Target != n.Target || n.Type != 'l' && got.Mode != n.Mode {
			t.Errorf("%s: got %+v, want type %c, mode %o, target %q", n.Path, got, n.Type, n.Mode, n.Target)
		}
		if n.HasTime && got.ModTime != when {
			t.Errorf("%s: got time %d, want %d", n.Path, got.ModTime, when)
		}
	}
	for name, want := range map[string]string{"ro/sub/f": "inside", "f": "new", "hard": "content of f", "l2": "", "keep/in": "content of keep/in"} {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: got %q, %v; want %q", name, b, err, want)
		}
	}
}

// Folders get their modes from below: one that is closed by its own mode would hide those in it.
func TestWriteAllClosedFolder(t *testing.T) {
	r := setup(t)
	infos, st := r.writeAll([]wire.Entry{
		{Path: "closed", Type: 'd', Mode: 0o600},
		{Path: "closed/in", Type: 'd', Mode: 0o750},
		{Path: "closed/in/f", Type: 'f', Mode: 0o644},
	}, nil)
	if st.Code != wire.CodeOK || len(infos) != 3 || infos[0].Mode != 0o600 || infos[1].Mode != 0o750 {
		t.Errorf("got %+v, %+v; want three entries with their modes", infos, st)
	}
}

func TestWriteAllErrors(t *testing.T) {
	r := setup(t)
	r.makeTree("dir/", "out -> /tmp", "f")
	for _, tt := range []struct {
		name  string
		entry wire.Entry
		text  string // the content that is sent
		want  wire.Code
	}{
		{"above", wire.Entry{Path: "../x", Type: 'f'}, "", wire.CodePath},
		{"through a link", wire.Entry{Path: "out/x", Type: 'f'}, "", wire.CodePath},
		{"over a folder", wire.Entry{Path: "dir", Type: 'f'}, "", wire.CodeExists},
		{"below a file", wire.Entry{Path: "f/x", Type: 'f'}, "", wire.CodeExists},
		{"a device", wire.Entry{Path: "dev", Type: 'o'}, "", wire.CodeUnsupported},
		{"short content", wire.Entry{Path: "s", Type: 'f', Size: 5}, "abc", wire.CodeOther},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, tt.name, func() {
				if _, st := r.writeAll([]wire.Entry{tt.entry}, map[string]string{tt.entry.Path: tt.text}); st.Code != tt.want {
					t.Errorf("got %+v, want code %d", st, tt.want)
				}
			})
		})
	}
}

// A file system without room says so, with the path.
func TestNoSpace(t *testing.T) {
	r := setup(t)
	small := filepath.Join(r.dir, "small")
	if err := os.Mkdir(small, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k,mode=0777"); err != nil {
		t.Skipf("needs to mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	if st := r.write("small/x", strings.Repeat("x", 4<<20), 0o644); st.Code != wire.CodeNoSpace || st.Path != "small/x" {
		t.Errorf("write: got %+v, want no space, with the path", st)
	}
	if list, _ := os.ReadDir(small); len(list) != 0 {
		t.Errorf("after a failed write there are %v, want nothing", list)
	}
}
