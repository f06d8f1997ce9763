//go:build linux || darwin

package s3store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	wsync "slipway/sync"
	"slipway/sync/folder"
	"slipway/sync/s3store"
)

const (
	benchFiles   = 5000
	benchSize    = 4 << 10
	benchWorkers = 16 // one PUT or GET per file: more did not help
)

// fixture is a folder of 5,000 files of 4 KiB in 100 folders, and a store on versitygw in a child.
type fixture struct {
	testing.TB
	store  *s3store.Store
	syncer *wsync.Syncer
	dir    string
	names  []string
	round  int
}

func newFixture(b testing.TB) *fixture {
	g := gateway(b)
	f := &fixture{TB: b, store: open(b, g.Endpoint, g.AccessKey, g.SecretKey), dir: b.TempDir()}
	f.syncer = wsync.New(f.store, wsync.Options{})
	content := make([]byte, benchSize)
	for i := range benchFiles {
		name := fmt.Sprintf("d%02d/f%04d", i%100, i)
		rand.Read(content)
		path := filepath.Join(f.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil { //nolint:gosec // ordinary modes
			b.Fatal(err)
		}
		f.names = append(f.names, name)
	}
	return f
}

func (f *fixture) timed(fn func() error) time.Duration {
	f.Helper()
	start := time.Now()
	if err := fn(); err != nil {
		f.Fatal(err)
	}
	return time.Since(start)
}

func (f *fixture) tree(dir string) wsync.Tree {
	tree, err := folder.New(dir)
	if err != nil {
		f.Fatal(err)
	}
	return tree
}

func (f *fixture) push() error {
	base, err := f.syncer.Open(f.Context(), fmt.Sprint("ws", f.round))
	if err != nil {
		return err
	}
	p, err := f.syncer.Push(f.Context(), base, f.tree(f.dir), wsync.PushOptions{})
	if err == nil && p.Files != benchFiles {
		err = fmt.Errorf("pushed %d files", p.Files)
	}
	return err
}

func (f *fixture) pull(dir string) error {
	_, p, err := f.syncer.Pull(f.Context(), fmt.Sprint("ws", f.round), f.tree(dir))
	if err == nil && p.Files != benchFiles {
		err = fmt.Errorf("pulled %d files", p.Files)
	}
	return err
}

// each runs fn on every file, with as many workers as serve one request per file best.
func (f *fixture) each(fn func(ctx context.Context, name string) error) error {
	ctx, cancel := context.WithCancelCause(f.Context())
	defer cancel(nil)
	todo := make(chan string)
	var wg sync.WaitGroup
	for range benchWorkers {
		wg.Go(func() {
			for name := range todo {
				if err := fn(ctx, name); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, name := range f.names {
		todo <- name
	}
	close(todo)
	wg.Wait()
	return context.Cause(ctx)
}

func (f *fixture) pushEach() error {
	return f.each(func(ctx context.Context, name string) error {
		content, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		_, err = f.store.Put(ctx, fmt.Sprintf("files%d/%s", f.round, name), bytes.NewReader(content), int64(len(content)), wsync.PutOptions{})
		return err
	})
}

func (f *fixture) pullEach(dir string) error {
	return f.each(func(ctx context.Context, name string) error {
		obj, err := f.store.Get(ctx, fmt.Sprintf("files%d/%s", f.round, name))
		if err != nil {
			return err
		}
		content, err := io.ReadAll(obj.Body)
		path := filepath.Join(dir, name)
		return errors.Join(err, obj.Body.Close(), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)) //nolint:gosec // ordinary modes
	})
}

// BenchmarkPush5000 and BenchmarkPull5000 compare packs with one request per file, by the same client on the same
// server, interleaved; x-per-file is the ratio of the medians.
func BenchmarkPush5000(b *testing.B) {
	f := newFixture(b)
	var packed, each []time.Duration
	for b.Loop() {
		f.round++
		packed = append(packed, f.timed(f.push))
		each = append(each, f.timed(f.pushEach))
	}
	report(b, packed, each)
}

func BenchmarkPull5000(b *testing.B) {
	f := newFixture(b)
	f.timed(f.push)
	f.timed(f.pushEach)
	var packed, each []time.Duration
	for b.Loop() {
		packed = append(packed, f.timed(func() error { return f.pull(b.TempDir()) }))
		each = append(each, f.timed(func() error { return f.pullEach(b.TempDir()) }))
	}
	report(b, packed, each)
}

func report(b *testing.B, packed, each []time.Duration) {
	slices.Sort(packed)
	slices.Sort(each)
	p, e := packed[len(packed)/2], each[len(each)/2]
	b.ReportMetric(p.Seconds()*1000, "ms/packed")
	b.ReportMetric(e.Seconds()*1000, "ms/per-file")
	b.ReportMetric(float64(e)/float64(p), "x-per-file")
	b.ReportMetric(0, "ns/op") // both together mean nothing
}
