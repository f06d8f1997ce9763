package wsynctest

import (
	"bytes"
	"crypto/md5" //nolint:gosec // part of the contract
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	wsync "slipway/sync"
)

// TreeFactory returns an empty tree.
type TreeFactory func(t *testing.T) wsync.Tree

// RunTree checks that a tree keeps the contract of wsync.Tree.
func RunTree(t *testing.T, factory TreeFactory) {
	for name, run := range map[string]func(*treeSuite){
		"RoundTrip": (*treeSuite).roundTrip, "Order": (*treeSuite).order, "Replace": (*treeSuite).replace, "FolderMode": (*treeSuite).folderMode,
		"NotThroughLinks": (*treeSuite).notThroughLinks, "Missing": (*treeSuite).missing, "Sums": (*treeSuite).sums, "Unread": (*treeSuite).unread,
		"Errors": (*treeSuite).errors, "Remove": (*treeSuite).remove, "AfterTellsChange": (*treeSuite).afterTellsChange, "ShortContent": (*treeSuite).shortContent,
		"Sequential": (*treeSuite).sequential, "Many": (*treeSuite).many, "ManyFail": (*treeSuite).manyFail,
	} {
		t.Run(name, func(t *testing.T) { run(&treeSuite{T: t, tree: factory(t)}) })
	}
}

type treeSuite struct {
	*testing.T
	tree wsync.Tree
}

func (s *treeSuite) write(nodes ...wsync.NewNode) []wsync.Node {
	s.Helper()
	made, err := s.tree.WriteAll(s.Context(), Entries(nodes...))
	if err != nil {
		s.Fatalf("write: %v", err)
	}
	if len(made) != len(nodes) {
		s.Fatalf("write: got %d nodes, want %d", len(made), len(nodes))
	}
	return made
}

func (s *treeSuite) walk() []wsync.Node {
	s.Helper()
	var nodes []wsync.Node
	if err := s.tree.Walk(s.Context(), func(n wsync.Node) error { nodes = append(nodes, n); return nil }); err != nil {
		s.Fatalf("walk: %v", err)
	}
	return nodes
}

func (s *treeSuite) read(path string) (string, error) {
	s.Helper()
	var content bytes.Buffer
	var fileErr error
	err := s.tree.ReadAll(s.Context(), []string{path}, func(c wsync.Content) error {
		if fileErr = c.Err; fileErr != nil {
			return nil
		}
		_, err := content.ReadFrom(c.Reader)
		return err
	})
	return content.String(), errors.Join(err, fileErr)
}

func (s *treeSuite) roundTrip() {
	made := s.write(Dir("d"), File("d/a", "content"), File("empty", ""), Link("l", "/etc/passwd"),
		wsync.NewNode{Path: "x", Type: wsync.TypeFile, Mode: 0o755, Size: 1, Content: strings.NewReader("x")})
	byPath := map[string]wsync.Node{}
	for _, n := range s.walk() {
		byPath[n.Path] = n
	}
	if got, want := slices.Sorted(maps.Keys(byPath)), []string{"d", "d/a", "empty", "l", "x"}; !slices.Equal(got, want) {
		s.Fatalf("walk: got %q, want %q", got, want)
	}
	for _, m := range made {
		// A folder's times change when something is put into it.
		if n := byPath[m.Path]; m.Type == wsync.TypeFile && n != m {
			s.Errorf("%s: WriteAll returned %+v, Walk %+v", m.Path, m, n)
		}
	}
	a, x, l := byPath["d/a"], byPath["x"], byPath["l"]
	if a.Mode != 0o644 || a.Size != 7 || a.ModTime != time.Unix(1_700_000_000, 123_456_789).UnixNano() || x.Mode != 0o755 {
		s.Errorf("got %+v and %+v, want what was written", a, x)
	}
	if a.Inode == 0 || a.ChangeTime == 0 && !inMemory(s.TempDir()) {
		s.Errorf("got inode %d and change time %d of a file, want both: without them every push reads everything", a.Inode, a.ChangeTime)
	}
	if l.Type != wsync.TypeSymlink || l.Target != "/etc/passwd" {
		s.Errorf("link: got %+v, want the target verbatim", l)
	}
	if got, err := s.read("d/a"); got != "content" || err != nil {
		s.Errorf("read: got %q, %v", got, err)
	}
}

// order: a folder before what it holds, siblings by name; reads in the order that was asked for.
func (s *treeSuite) order() {
	s.write(Dir("b"), File("b/2", "x"), File("b/1", "x"), Dir("a"), File("c", "x"), File("a-b", "x"), File("a/z", "x"))
	var got []string
	for _, n := range s.walk() {
		got = append(got, n.Path)
	}
	for i, p := range got {
		if dir := filepath.ToSlash(filepath.Dir(p)); dir != "." && slices.Index(got, dir) > i {
			s.Errorf("walk: %s comes before its folder in %q", p, got)
		}
	}
	want := []string{"c", "a/z", "b/2", "b/1", "c"}
	got = nil
	err := s.tree.ReadAll(s.Context(), want, func(c wsync.Content) error { got = append(got, c.Node.Path); return c.Err })
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("read: got %q, %v, want %q", got, err, want)
	}
}

func (s *treeSuite) replace() {
	s.write(File("f", "old"), Link("l", "f"))
	s.write(File("f", "new"), File("l", "was a link"))
	for path, want := range map[string]string{"f": "new", "l": "was a link"} {
		if got, err := s.read(path); got != want || err != nil {
			s.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	s.write(Link("f", "elsewhere"), Dir("l"))
	for _, n := range s.walk() {
		if n.Path == "f" && n.Target != "elsewhere" || n.Path == "l" && n.Type != wsync.TypeDir {
			s.Errorf("got %+v after replacing a file by a link, and a file by a folder", n)
		}
	}
}

// folderMode: a folder that may not be written to can be filled, and has its mode in the end.
func (s *treeSuite) folderMode() {
	closed, inner := Dir("d"), Dir("d/e")
	closed.Mode, inner.Mode = 0o555, 0o500
	s.write(closed, inner, File("d/e/f", "x"), Link("d/l", "e"))
	for _, n := range s.walk() {
		if n.Path == "d" && n.Mode != 0o555 || n.Path == "d/e" && n.Mode != 0o500 {
			s.Errorf("got %s with mode %04o, want 0555 of d and 0500 of d/e", n.Path, n.Mode)
		}
	}
	s.write(Dir("d"), Dir("d/e")) // so that they can be removed
}

func (s *treeSuite) notThroughLinks() {
	s.write(Dir("real"), File("real/f", "secret"), Link("link", "real"), Link("file", "real/f"))
	for _, path := range []string{"link/f", "file", "link"} {
		if got, err := s.read(path); err == nil {
			s.Errorf("read %s: got %q, want an error", path, got)
		}
	}
	if _, err := s.tree.WriteAll(s.Context(), Entries(File("link/planted", "x"))); err == nil {
		s.Error("write through a link: got no error")
	}
	if err := s.tree.Remove(s.Context(), []string{"link/f"}); err != nil {
		s.Logf("remove through a link: %v", err)
	}
	if got, err := s.read("real/f"); got != "secret" || err != nil {
		s.Errorf("after a remove through a link: got %q, %v", got, err)
	}
	for _, path := range []string{"../escape", "/abs", "a/../../b", "a//b", ".", ""} {
		if _, err := s.tree.WriteAll(s.Context(), Entries(File(path, "x"))); err == nil {
			s.Errorf("write %q: got no error", path)
		}
	}
}

func (s *treeSuite) missing() {
	s.write(File("there", "x"))
	if _, err := s.read("none"); !errors.Is(err, wsync.ErrNotFound) {
		s.Errorf("read: got error %v, want %v", err, wsync.ErrNotFound)
	}
	if _, err := s.read("no/such/folder"); !errors.Is(err, wsync.ErrNotFound) {
		s.Errorf("read in a missing folder: got error %v, want %v", err, wsync.ErrNotFound)
	}
	var sums []wsync.Sum
	err := s.tree.Hash(s.Context(), []string{"none", "there"}, func(sum wsync.Sum) error { sums = append(sums, sum); return nil })
	if err != nil || len(sums) != 2 || !errors.Is(sums[0].Err, wsync.ErrNotFound) || sums[1].Err != nil {
		s.Errorf("hash: got %+v, %v, want an error for the first and a sum for the second", sums, err)
	}
}

func (s *treeSuite) sums() {
	content := strings.Repeat("0123456789", 100_000)
	s.write(File("f", content))
	err := s.tree.Hash(s.Context(), []string{"f"}, func(got wsync.Sum) error {
		want := wsync.Sum{Path: "f", Size: int64(len(content)), MD5: md5.Sum([]byte(content)), SHA256: sha256.Sum256([]byte(content))} //nolint:gosec // see the import
		if got != want {
			s.Errorf("got %+v, want %+v", got, want)
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

// unread: what a callback leaves is skipped.
func (s *treeSuite) unread() {
	s.write(File("a", strings.Repeat("a", 1<<20)), File("b", "b"), File("c", "c"))
	var got []string
	err := s.tree.ReadAll(s.Context(), []string{"a", "b", "c"}, func(c wsync.Content) error {
		if c.Node.Path == "b" {
			return nil
		}
		b := make([]byte, 1)
		_, err := io.ReadFull(c.Reader, b)
		got = append(got, string(b))
		return err
	})
	if err != nil || strings.Join(got, "") != "ac" {
		s.Errorf("got %q, %v, want the first bytes of a and c", got, err)
	}
}

// errors of callbacks come back, and end the call.
func (s *treeSuite) errors() {
	s.write(File("a", "x"), File("b", "x"))
	errMine := errors.New("mine")
	calls := 0
	for name, err := range map[string]error{
		"walk": s.tree.Walk(s.Context(), func(wsync.Node) error { calls++; return errMine }),
		"hash": s.tree.Hash(s.Context(), []string{"a", "b"}, func(wsync.Sum) error { calls++; return errMine }),
		"read": s.tree.ReadAll(s.Context(), []string{"a", "b"}, func(wsync.Content) error { calls++; return errMine }),
	} {
		if !errors.Is(err, errMine) {
			s.Errorf("%s: got error %v, want the callback's", name, err)
		}
	}
	if calls != 3 {
		s.Errorf("got %d calls, want one of each", calls)
	}
	_, err := s.tree.WriteAll(s.Context(), func(yield func(wsync.NewNode, error) bool) { yield(wsync.NewNode{}, errMine) })
	if !errors.Is(err, errMine) {
		s.Errorf("write: got error %v, want the iterator's", err)
	}
}

func (s *treeSuite) remove() {
	s.write(Dir("d"), Dir("d/e"), File("d/e/f", "x"), File("keep", "x"), Link("l", "keep"))
	if err := s.tree.Remove(s.Context(), []string{"d", "none", "no/such", "l"}); err != nil {
		s.Fatalf("remove: %v", err)
	}
	if nodes := s.walk(); len(nodes) != 1 || nodes[0].Path != "keep" {
		s.Errorf("left: %+v, want keep only", nodes)
	}
}

func (s *treeSuite) afterTellsChange() {
	s.write(File("f", "before"))
	err := s.tree.ReadAll(s.Context(), []string{"f"}, func(c wsync.Content) error {
		if _, err := io.Copy(io.Discard, c.Reader); err != nil {
			return err
		}
		after, err := c.After()
		if err != nil || after != c.Node {
			s.Errorf("after reading: got %+v, %v, want %+v", after, err, c.Node)
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

// shortContent: a file that its source did not fill must not look complete.
func (s *treeSuite) shortContent() {
	n := File("f", "abc")
	n.Size = 10
	if _, err := s.tree.WriteAll(s.Context(), Entries(n)); err == nil {
		s.Error("got no error for content that ends early")
	}
}
