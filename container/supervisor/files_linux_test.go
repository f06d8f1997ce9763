package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"slipway/container"
)

func TestFilesRoundTrip(t *testing.T) {
	r := setup(t)
	ctx, f := t.Context(), r.Files()
	content := bytes.Repeat([]byte("slipway\n"), 50000) // several frames
	if err := f.Write(ctx, "a/b/c.txt", bytes.NewReader(content), 0o640); err != nil {
		t.Fatalf("Write: %v", err)
	}
	var got bytes.Buffer
	info, err := f.Read(ctx, "a/b/c.txt", &got, 0)
	if err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Fatalf("Read = %d bytes, %v", got.Len(), err)
	}
	if info.Size != int64(len(content)) || info.Mode != 0o640 || info.Type != container.TypeFile || info.Path != "a/b/c.txt" {
		t.Errorf("Read = %+v", info)
	}
	stat, err := f.Stat(ctx, "a/b/c.txt")
	if err != nil || stat != info {
		t.Errorf("Stat = %+v, %v, want %+v", stat, err, info)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(r.work, "a/b/c.txt"), &st); err != nil || int(st.Uid) != stepUser().UID || int(st.Gid) != stepUser().GID {
		t.Errorf("owner = %d:%d, %v, want %+v", st.Uid, st.Gid, err, stepUser())
	}
	if err := f.Write(ctx, "a/b/c.txt", strings.NewReader("new"), 0o600); err != nil {
		t.Errorf("second Write: %v", err)
	}
	list, err := f.List(ctx, "a/b")
	if err != nil || len(list) != 1 || list[0].Path != "a/b/c.txt" || list[0].Size != 3 {
		t.Errorf("List = %+v, %v: a temporary file?", list, err)
	}
	if err := f.Mkdir(ctx, "m/n", 0o700); err != nil {
		t.Errorf("Mkdir: %v", err)
	}
	if err := f.Mkdir(ctx, "m/n", 0o700); err != nil {
		t.Errorf("second Mkdir: %v", err)
	}
	for range 2 {
		if err := f.Delete(ctx, "a"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if _, err := f.Stat(ctx, "a"); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Stat of what was deleted = %v", err)
	}
	if root, err := f.Stat(ctx, "."); err != nil || root.Type != container.TypeDir {
		t.Errorf("Stat of the root = %+v, %v", root, err)
	}
}

func TestFilesErrors(t *testing.T) {
	r := setup(t)
	r.sh("mkdir dir closed; echo secret > ../tmp/secret; ln -s ../tmp out; ln -s ../tmp/secret link; ln -s dir inlink; mkfifo fifo; echo x > file; echo x > unreadable; chmod 0 unreadable; chmod 0 closed")
	ctx, f := t.Context(), r.Files()
	read := func(path string) error { _, err := f.Read(ctx, path, io.Discard, 10); return err }
	write := func(path string) error { return f.Write(ctx, path, strings.NewReader("x"), 0o644) }
	list := func(path string) error { _, err := f.List(ctx, path); return err }
	mkdir := func(path string) error { return f.Mkdir(ctx, path, 0o755) }
	del := func(path string) error { return f.Delete(ctx, path) }
	stat := func(path string) error { _, err := f.Stat(ctx, path); return err }
	if err := f.Write(ctx, "large", strings.NewReader("12345678901"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []fileCase{
		{"read missing", read, "no", container.ErrNotFound},
		{"read below a file", read, "file/x", container.ErrNotFound},
		{"read folder", read, "dir", container.ErrNotRegular},
		{"read link", read, "link", container.ErrNotRegular},
		{"read fifo", read, "fifo", container.ErrNotRegular},
		{"read through link", read, "out/secret", container.ErrPath},
		{"read through link inside", read, "inlink/x", container.ErrPath},
		{"read unreadable", read, "unreadable", container.ErrPermission},
		{"read large", read, "large", container.ErrTooLarge},
		{"read root", read, ".", container.ErrPath},
		{"read above", read, "../tmp/secret", container.ErrPath},
		{"read absolute", read, "/etc/passwd", container.ErrPath},
		{"read empty", read, "", container.ErrPath},
		{"read unclean", read, "dir/./x", container.ErrPath},
		{"read slash", read, "dir/", container.ErrPath},
		{"read zero byte", read, "a\x00b", container.ErrPath},
		{"read long", read, strings.Repeat("a", 300), container.ErrPath},
		{"write through link", write, "out/new", container.ErrPath},
		{"write over folder", write, "dir", container.ErrExists},
		{"write below a file", write, "file/x", container.ErrExists},
		{"write above", write, "../x", container.ErrPath},
		{"write in closed", write, "closed/x", container.ErrPermission},
		{"list file", list, "file", container.ErrNotFound},
		{"list closed", list, "closed", container.ErrPermission},
		{"list through link", list, "out", container.ErrPath},
		{"list missing", list, "no", container.ErrNotFound},
		{"mkdir over file", mkdir, "file", container.ErrExists},
		{"mkdir through link", mkdir, "out/d", container.ErrPath},
		{"delete root", del, ".", container.ErrPath},
		{"delete through link", del, "out/secret", container.ErrPath},
		{"delete missing", del, "no/no", nil},
		{"stat link", stat, "link", nil},
		{"stat fifo", stat, "fifo", nil},
		{"write over link", write, "link", nil},
		{"write over fifo", write, "fifo", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, tt.check)
	}
	r.nothingOutside(t)
}

// fileCase is an operation on a path, and its error.
type fileCase struct {
	name string
	op   func(string) error
	path string
	want error
}

func (tt fileCase) check(t *testing.T) {
	if err := tt.op(tt.path); !errors.Is(err, tt.want) {
		t.Errorf("= %v, want %v", err, tt.want)
	}
}

// nothingOutside checks that what lies beside the workspace is as it was.
func (r *rig) nothingOutside(t *testing.T) {
	t.Helper()
	if b, err := os.ReadFile(filepath.Join(r.root, "tmp/secret")); string(b) != "secret\n" {
		t.Errorf("the file outside = %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(r.root, "tmp/new")); err == nil {
		t.Error("a file was made outside")
	}
}

func TestFilesWriteFails(t *testing.T) {
	r := setup(t)
	ctx, f := t.Context(), r.Files()
	boom := errors.New("boom")
	err := f.Write(ctx, "x", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(boom)), 0o644)
	if !errors.Is(err, boom) {
		t.Errorf("Write = %v, want the reader's error", err)
	}
	if list, err := f.List(ctx, "."); err != nil || len(list) != 0 {
		t.Errorf("after a failed Write there are %v, %v", list, err)
	}
	canceled, cancel := context.WithCancel(ctx)
	pr, pw := io.Pipe()
	go func() {
		_, _ = pw.Write([]byte("abc"))
		cancel()
		_ = pw.Close()
	}()
	if err := f.Write(canceled, "y", pr, 0o644); err == nil {
		_, err = f.Stat(ctx, "y")
		if err != nil {
			t.Errorf("a canceled Write said that it wrote: %v", err)
		}
	}
	if _, err := f.Read(ctx, "no", io.Discard, 0); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("the next Read = %v", err)
	}
}

func TestFilesNoSpace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	r := setup(t)
	small := filepath.Join(r.work, "small")
	if err := os.Mkdir(small, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k,mode=0777"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, 0); _ = r.Stop(context.Background(), 0) })
	ctx := t.Context()
	if err := r.Files().Write(ctx, "small/x", bytes.NewReader(make([]byte, 4<<20)), 0o644); !errors.Is(err, container.ErrNoSpace) {
		t.Errorf("Write = %v, want ErrNoSpace", err)
	}
	_, err := r.Files().WriteAll(ctx, entries(container.NewFile{Path: "small/y", Type: container.TypeFile, Size: 4 << 20, Content: bytes.NewReader(make([]byte, 4<<20))}))
	if !errors.Is(err, container.ErrNoSpace) || !strings.Contains(err.Error(), "small/y") {
		t.Errorf("WriteAll = %v, want ErrNoSpace with the path", err)
	}
}

func TestWalk(t *testing.T) {
	r := setup(t)
	r.sh("mkdir -p b/c a; echo x > b/c/f; echo y > b/a.txt; ln -s nowhere b/l; mkfifo p; mkdir closed; touch closed/in; chmod 0 closed; ln -s / root")
	makeDeep(t, r.work, 70)
	var got []string
	deepest := 0
	err := r.Files().Walk(t.Context(), func(i container.FileInfo) error {
		line := string(i.Type) + " " + i.Path
		if i.Target != "" {
			line += " -> " + i.Target
		}
		if i.Err != nil {
			line += " !"
		}
		if strings.HasPrefix(i.Path, "d") {
			depth := strings.Count(i.Path, "/") + 1
			deepest = max(deepest, depth)
			if (depth == 65) != errors.Is(i.Err, container.ErrUnsupported) {
				t.Errorf("depth %d: Err = %v", depth, i.Err)
			}
			return nil
		}
		got = append(got, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "d a|d b|f b/a.txt|d b/c|f b/c/f|l b/l -> nowhere|d closed !|o p|l root -> /"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("Walk = %s\nwant   %s", s, want)
	}
	if deepest != 65 {
		t.Errorf("deepest = %d, want 65", deepest)
	}
	boom := errors.New("boom")
	if err := r.Files().Walk(t.Context(), func(container.FileInfo) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("Walk with a failing fn = %v", err)
	}
}
