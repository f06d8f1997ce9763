package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	wsync "slipway/sync"
	"slipway/sync/filestore"
	"slipway/sync/wsynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // a test may have closed it
	return s
}

func put(t *testing.T, s *filestore.Store, key, content string) string {
	t.Helper()
	etag, err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), wsync.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return etag
}

func get(t *testing.T, s *filestore.Store, key string) (string, *wsync.Object) {
	t.Helper()
	obj, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, obj), obj
}

func read(t *testing.T, obj *wsync.Object) string {
	t.Helper()
	b, err := io.ReadAll(obj.Body)
	if err = errors.Join(err, obj.Body.Close()); err != nil {
		t.Fatalf("read %s: %v", obj.Key, err)
	}
	return string(b)
}

func list(t *testing.T, s *filestore.Store, prefix string) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// files are the paths of all files and folders below dir.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			paths = append(paths, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestConformance(t *testing.T) {
	s := open(t, t.TempDir())
	wsynctest.Run(t, func(*testing.T) wsync.Store { return s })
}

// TestKeys: any bytes are a key of their own, and none leads out of the folder.
func TestKeys(t *testing.T) {
	above := t.TempDir()
	s := open(t, filepath.Join(above, "store"))
	keys := []string{
		"a", "a/", "a/b", "a//b", "a-b", "a0", "A", "A/b", "/", "/a", "//", ".", "..", "...", "../x", "a/../../x", "a/./b", "..a/b",
		"@lock", "@put-1", "x@", "x@/y", "x+", "x+/y", "%", "%2e", "%2e%2e/x", "\x00", "\xff/\xfe", "ü", "a\\b", "c:", "~", " ", "-rf",
		strings.Repeat("l", 80), strings.Repeat("l", 80) + "/l", strings.Repeat("l", 81), strings.Repeat("l", 80) + "+/l",
		strings.Repeat("L", 1024), strings.Repeat("/", 60), strings.Repeat("../", 60),
	}
	for _, key := range keys {
		put(t, s, key, "content of "+key)
	}
	for _, key := range keys {
		if got, obj := get(t, s, key); got != "content of "+key || obj.Key != key {
			t.Errorf("get %q: got %q of %q", key, got, obj.Key)
		}
	}
	slices.Sort(keys)
	for _, prefix := range []string{"", "a", "a/", "a//", "../", "l", strings.Repeat("l", 81), "\xff", "nothing"} {
		want := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		if got := list(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q: got %q, want %q", prefix, got, want)
		}
	}
	if entries, err := os.ReadDir(above); err != nil || len(entries) != 1 {
		t.Errorf("beside the store's folder: got %v, %v, want nothing", entries, err)
	}
	if err := s.Delete(t.Context(), keys...); err != nil {
		t.Error(err)
	}
	if got := files(t, filepath.Join(above, "store")); !slices.Equal(got, []string{"@lock"}) {
		t.Errorf("after all was deleted: got %q, want the lock alone", got)
	}
}

// TestKeys_Refused: what no S3 service takes either.
func TestKeys_Refused(t *testing.T) {
	s := open(t, t.TempDir())
	for _, key := range []string{"", strings.Repeat("k", 1025)} {
		_, putErr := s.Put(t.Context(), key, strings.NewReader(""), 0, wsync.PutOptions{})
		_, getErr := s.Get(t.Context(), key)
		if err := s.Delete(t.Context(), key); putErr == nil || getErr == nil || err == nil {
			t.Errorf("key of %d bytes: put %v, get %v, delete %v, want errors", len(key), putErr, getErr, err)
		}
	}
}

// TestForeignFiles: what somebody else puts into the folder is neither an object nor an obstacle.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "a/b", "x")
	put(t, s, "a/shorte", "x") // a/short+/e@, below, reads like it
	for _, name := range []string{".DS_Store", "a/notes.txt", "a/B@", "a/x+@", "a/%41%@", "a/%2F@", "a/@"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/short+", "a/lost+found", "a/c@"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "d@"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "e@"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"a/b", "a/shorte"}) {
		t.Errorf("list: got %q, want a/b and a/shorte", got)
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
}

// TestReopen: a second Store is refused while one is open; the next one finds the objects, and nothing half written.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	etag := put(t, s, "a/b", "kept")
	if _, err := filestore.Open(dir); !errors.Is(err, filestore.ErrInUse) {
		t.Errorf("open while it is open: got error %v, want %v", err, filestore.ErrInUse)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "@put-KILLED"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got, obj := get(t, s, "a/b"); got != "kept" || obj.ETag != etag {
		t.Errorf("get: got %q with ETag %s, want kept, %s", got, obj.ETag, etag)
	}
	if got, want := files(t, dir), []string{"@lock", "a", "a/b@"}; !slices.Equal(got, want) {
		t.Errorf("files: got %q, want %q", got, want)
	}
}

// TestOpen_Refuses: the error names the folder.
func TestOpen_Refuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.Open(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v, want one that names %s", err, file)
	}
}

// TestWrongBody: a Put whose body is not the announced one writes nothing, and leaves no draft.
func TestWrongBody(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "k", "old")
	errBody := errors.New("disk on fire")
	for name, c := range map[string]struct {
		body io.ReadSeeker
		size int64
		opts wsync.PutOptions
		want string
	}{
		"short":       {strings.NewReader("new"), 4, wsync.PutOptions{}, "3 bytes, not 4"},
		"long":        {strings.NewReader("new"), 2, wsync.PutOptions{}, "3 bytes, not 2"},
		"another sum": {strings.NewReader("new"), 3, wsync.PutOptions{SHA256: [32]byte{1}}, "SHA256"},
		"no rewind":   {failing{errBody}, 3, wsync.PutOptions{}, errBody.Error()},
		"metadata":    {strings.NewReader("new"), 3, wsync.PutOptions{Metadata: map[string]string{"k": strings.Repeat("v", 64<<10)}}, "metadata"},
	} {
		if _, err := s.Put(t.Context(), "k", c.body, c.size, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
	if got, _ := get(t, s, "k"); got != "old" {
		t.Errorf("get: got %q, want what was there", got)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"@lock", "k@"}) {
		t.Errorf("files: got %q, want no draft", got)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)       { return 0, f.err }
func (f failing) Seek(int64, int) (int64, error) { return 0, f.err }

// TestCanceled: a call ends with its context, also in the middle of a body, and a late cancellation publishes nothing.
func TestCanceled(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "there", "x")
	ctx, cancel := context.WithCancel(t.Context())
	endless := readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if err := s.PutStream(ctx, "k", endless, -1); !errors.Is(err, context.Canceled) || !errors.Is(err, wsync.ErrUnavailable) {
		t.Errorf("put stream: got error %v, want canceled and unavailable", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if err := s.PutStream(ctx, "k", readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }), -1); !errors.Is(err, context.Canceled) {
		t.Errorf("put stream, canceled at its end: got error %v", err)
	}
	if err := s.Delete(ctx, "there"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: got error %v", err)
	}
	for _, err := range s.List(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("list: got error %v", err)
		}
	}
	if got := files(t, dir); !slices.Equal(got, []string{"@lock", "there@"}) {
		t.Errorf("files: got %q, want nothing of the canceled calls", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestOpenObject: what was opened stays what it was.
func TestOpenObject(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "replaced", "one")
	put(t, s, "deleted", "two")
	replaced, err := s.Get(t.Context(), "replaced")
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := s.GetRange(t.Context(), "deleted", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "replaced", "another")
	if err := s.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	if a, b := read(t, replaced), read(t, deleted); a != "one" || b != "wo" {
		t.Errorf("got %q and %q, want one and wo", a, b)
	}
}

// TestETagsDiffer: the same content is another object. Otherwise a swap would hold again after a change and its reversal.
func TestETagsDiffer(t *testing.T) {
	s := open(t, t.TempDir())
	first := put(t, s, "k", "x")
	if put(t, s, "k", "y"); put(t, s, "k", "x") == first {
		t.Errorf("the ETag %s came back", first)
	}
}

// TestMetadata: names of metadata are what S3 makes of them.
func TestMetadata(t *testing.T) {
	s := open(t, t.TempDir())
	opts := wsync.PutOptions{Metadata: map[string]string{"Commit": "A/ü"}}
	if _, err := s.Put(t.Context(), "k", strings.NewReader(""), 0, opts); err != nil {
		t.Fatal(err)
	}
	if _, obj := get(t, s, "k"); len(obj.Metadata) != 1 || obj.Metadata["commit"] != "A/ü" {
		t.Errorf("got %v, want commit=A/ü", obj.Metadata)
	}
}

// TestDamaged: a file that a power cut left is reported, is not listed in silence, and can be replaced.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "k", "0123456789")
	path := filepath.Join(dir, "k@")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := func(footer string) []byte { return append(bytes.Clone(whole[:len(whole)-10]), footer...) }
	for name, content := range map[string][]byte{
		"empty": nil, "cut at the end": whole[:len(whole)-1], "cut in the trailer": whole[:30], "cut at the start": whole[1:],
		"zeros": make([]byte, len(whole)), "content alone": whole[:10],
		"long trailer": end("\n7fffffff\n"), "longer than the file": end("\n00001000\n"), "no JSON": end("\n00000001\n"),
		"no ETag": []byte("{\"size\":0}\n0000000a\n"),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, wsync.ErrCorrupt) {
			t.Errorf("%s: get: got error %v, want %v", name, err, wsync.ErrCorrupt)
		}
		for _, err := range s.List(t.Context(), "") {
			if !errors.Is(err, wsync.ErrCorrupt) {
				t.Errorf("%s: list: got error %v, want %v", name, err, wsync.ErrCorrupt)
			}
		}
		if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), 1, wsync.PutOptions{IfNoneMatch: true}); !errors.Is(err, wsync.ErrCorrupt) {
			t.Errorf("%s: conditional put: got error %v, want %v", name, err, wsync.ErrCorrupt)
		}
	}
	put(t, s, "k", "again")
	if got, _ := get(t, s, "k"); got != "again" {
		t.Errorf("get after a new put: got %q, want again", got)
	}
}

// TestSharedFolder: a delete that takes an empty folder away does not take it from under a put.
func TestSharedFolder(t *testing.T) {
	s := open(t, t.TempDir())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				key := fmt.Sprint("deep/er/", i)
				if err := s.PutStream(t.Context(), key, strings.NewReader("x"), 1); err != nil {
					t.Error(err)
					return
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 { // objects that go while they are listed are left out
		for _, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
		}
	}
	all.Wait()
}
