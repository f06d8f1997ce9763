package wsynctest

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"

	wsync "slipway/sync"
)

// sequential: callbacks come one after the other, and none after its method has returned.
func (s *treeSuite) sequential() {
	nodes := []wsync.NewNode{Dir("d")}
	var paths []string
	for i := range 100 {
		paths = append(paths, fmt.Sprintf("d/f%03d", i))
		nodes = append(nodes, File(paths[i], fmt.Sprint("content of ", i)))
	}
	s.write(nodes...)
	var running, calls atomic.Int32
	enter := func() error {
		if running.Add(1) > 1 {
			s.Error("two callbacks at once")
		}
		runtime.Gosched() // gives another one the chance
		running.Add(-1)
		calls.Add(1)
		return nil
	}
	for name, call := range map[string]func() error{
		"Walk":    func() error { return s.tree.Walk(s.Context(), func(wsync.Node) error { return enter() }) },
		"Hash":    func() error { return s.tree.Hash(s.Context(), paths, func(wsync.Sum) error { return enter() }) },
		"ReadAll": func() error { return s.tree.ReadAll(s.Context(), paths, func(wsync.Content) error { return enter() }) },
	} {
		calls.Store(0)
		err := call()
		if got := calls.Load(); err != nil || int(got) < len(paths) {
			s.Errorf("%s: got error %v and %d calls when it returned, want %d or one more", name, err, got, len(paths))
		}
	}
}

// many: files in memory, which a tree may write several at once, come back in the order in which they were handed over.
func (s *treeSuite) many() {
	nodes := []wsync.NewNode{Dir("d0"), Dir("d1"), Dir("d2")}
	for i := range 500 {
		n := File(fmt.Sprintf("d%d/f%03d", i/7%3, i), "streamed")
		if i%50 != 0 {
			n = File(n.Path, fmt.Sprint("content of ", i))
			n.Data = fmt.Append(nil, "content of ", i)
		}
		n.Mode = []fs.FileMode{0o644, 0o600, 0o755, 0o444, 0o666}[i%5] // whatever the umask says
		nodes = append(nodes, n)
	}
	nodes = append(nodes, Link("d0/l", "f000"))
	made := s.write(nodes...)
	for i, n := range nodes {
		if m := made[i]; m.Path != n.Path || n.Type == wsync.TypeFile && (m.Size != n.Size || m.Mode != uint32(n.Mode)) {
			s.Fatalf("entry %d: got %+v, want %s with %d bytes and mode %v", i, m, n.Path, n.Size, n.Mode)
		}
	}
	for _, i := range []int{1, 250, 499} {
		if got, err := s.read(nodes[3+i].Path); err != nil || got != fmt.Sprint("content of ", i) && i%50 != 0 {
			s.Errorf("%s: got %q, %v", nodes[3+i].Path, got, err)
		}
	}
}

// manyFail: one file that can't be made fails the call and is named, whatever is made beside it.
func (s *treeSuite) manyFail() {
	var nodes []wsync.NewNode
	for i := range 300 {
		n := File(fmt.Sprintf("f%03d", i), "x")
		n.Data = []byte("x")
		nodes = append(nodes, n)
	}
	nodes[20].Path = "f000/f" // below a file
	if _, err := s.tree.WriteAll(s.Context(), Entries(nodes...)); err == nil || !strings.Contains(err.Error(), "f000/f") {
		s.Errorf("got error %v, want one that names f000/f", err)
	}
}
