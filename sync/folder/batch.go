package folder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"

	"slipway/sync/internal/parallel"

	wsync "slipway/sync"
)

// writers makes the files whose content is in memory, several at a time: the system takes longer to make a small file
// than the network takes to deliver it.
type writers struct {
	dir     string
	ctx     context.Context
	group   *parallel.Group
	cursors chan *cursor // one for each that runs; nil: not opened yet
	next    *batch
	batches []*batch
}

// batch is some files of one folder, or of a few small folders. One goroutine writes it.
type batch struct {
	folder  string
	size    int64
	entries []wsync.NewNode
	at      []int // their places in the result
	nodes   []wsync.Node
}

const (
	// maxWriters: more goroutines made nothing faster when it was measured.
	maxWriters = 4
	// A batch is full by its number of files, or by its bytes, which a Pull keeps in memory until they are written.
	// It ends early where the folder changes, so that two goroutines seldom work in the same folder.
	batchFiles = 64
	batchBytes = 1 << 20
	earlyFiles = 16
)

func newWriters(ctx context.Context, dir string) *writers {
	n := min(maxWriters, runtime.GOMAXPROCS(0))
	w := &writers{dir: dir, ctx: ctx, group: parallel.NewGroup(ctx, n), cursors: make(chan *cursor, n), next: &batch{}}
	for range n {
		w.cursors <- nil
	}
	return w
}

// add takes a file, which is made some time before wait returns. at is its place in the result.
func (w *writers) add(e wsync.NewNode, at int) error {
	folder := path.Dir(e.Path)
	if b := w.next; len(b.entries) >= batchFiles || b.size >= batchBytes || len(b.entries) >= earlyFiles && folder != b.folder {
		if err := w.start(); err != nil {
			return err
		}
	}
	b := w.next
	b.folder = folder
	b.size += e.Size
	b.entries, b.at = append(b.entries, e), append(b.at, at)
	return nil
}

func (w *writers) start() error {
	b := w.next
	if len(b.entries) == 0 {
		return nil
	}
	w.next = &batch{entries: make([]wsync.NewNode, 0, batchFiles), at: make([]int, 0, batchFiles)}
	w.batches = append(w.batches, b)
	return w.group.Start(func(ctx context.Context) (err error) {
		c := <-w.cursors
		defer func() { w.cursors <- c }()
		if c == nil {
			if c, err = newCursor(w.dir); err != nil {
				return err
			}
		}
		return b.write(ctx, c)
	})
}

func (b *batch) write(ctx context.Context, c *cursor) error {
	b.nodes = make([]wsync.Node, len(b.entries))
	for i := range b.entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var err error
		if b.nodes[i], err = c.write(&b.entries[i]); err != nil {
			return fmt.Errorf("write %q: %w", b.entries[i].Path, err)
		}
	}
	b.entries = nil // frees the content
	return nil
}

// wait returns when all that was added is made.
func (w *writers) wait() error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.group.Wait(); err != nil {
		return err
	}
	w.group = parallel.NewGroup(w.ctx, cap(w.cursors))
	return nil
}

// result puts what was made into its places.
func (w *writers) result(nodes []wsync.Node) {
	for _, b := range w.batches {
		for i, at := range b.at {
			nodes[at] = b.nodes[i]
		}
	}
}

// close gives up what is not made yet.
func (w *writers) close() {
	w.group.Cancel(errGivenUp)
	w.group.Wait() //nolint:errcheck // wait has returned it already
	close(w.cursors)
	for c := range w.cursors {
		if c != nil {
			c.close()
		}
	}
}

var errGivenUp = errors.New("given up")
