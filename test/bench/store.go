package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	wsync "slipway/sync"
	"slipway/sync/folder"
)

const (
	files    = 5000
	fileSize = 4 << 10
	perFile  = 32 // requests in flight of the rival; more did not help in any run
)

// pushSection compares the push of a new workspace with one PUT per file.
func pushSection(_ context.Context, p *parts, rounds int) (section, error) {
	dir := filepath.Join(p.dir, "tree")
	if err := makeTree(dir); err != nil {
		return section{}, err
	}
	n := 0
	return section{
		name: "push", rounds: max(rounds/3, 3),
		rivals: []rival{
			{"slipway push", func(ctx context.Context) (time.Duration, error) {
				n++
				return timed(func() error { return p.push(ctx, dir, fmt.Sprintf("ws/%d", n)) })
			}},
			{"one PUT per file", func(ctx context.Context) (time.Duration, error) {
				n++
				return timed(func() error { return p.putEach(ctx, dir, fmt.Sprintf("raw/%d/", n)) })
			}},
		},
		goals: []goal{{"one PUT per file", 1.0 / 8}},
	}, nil
}

// pullSection compares the restore of a workspace with one GET per file.
func pullSection(ctx context.Context, p *parts, rounds int) (section, error) {
	dir := filepath.Join(p.dir, "tree")
	if err := p.push(ctx, dir, "ws/pull"); err != nil {
		return section{}, err
	}
	if err := p.putEach(ctx, dir, "raw/pull/"); err != nil {
		return section{}, err
	}
	fresh := func(f func(dir string) error) (time.Duration, error) {
		dst, err := os.MkdirTemp(p.dir, "pull-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dst)
		return timed(func() error { return f(dst) })
	}
	return section{
		name: "pull", rounds: max(rounds/3, 3),
		rivals: []rival{
			{"slipway pull", func(ctx context.Context) (time.Duration, error) {
				return fresh(func(dst string) error { return p.pull(ctx, dst) })
			}},
			{"one GET per file", func(ctx context.Context) (time.Duration, error) {
				return fresh(func(dst string) error { return p.getEach(ctx, dst) })
			}},
		},
		goals: []goal{{"one GET per file", 1.0 / 8}},
	}, nil
}

func makeTree(dir string) error {
	content := make([]byte, fileSize)
	for i := range files {
		path := filepath.Join(dir, name(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		copy(content, fmt.Sprintf("file %d\n", i))
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func name(i int) string { return fmt.Sprintf("d%02d/f%04d", i%100, i) }

func (p *parts) push(ctx context.Context, dir, prefix string) error {
	tree, err := folder.New(dir)
	if err != nil {
		return err
	}
	s := wsync.New(p.store, wsync.Options{})
	base, err := s.Open(ctx, prefix)
	if err != nil {
		return err
	}
	pushed, err := s.Push(ctx, base, tree, wsync.PushOptions{Writer: wsync.Writer{Worker: "bench", Job: "bench", Attempt: 1, Fence: 1}})
	if err == nil && pushed.Files != files {
		err = fmt.Errorf("pushed %d files", pushed.Files)
	}
	return err
}

func (p *parts) pull(ctx context.Context, dir string) error {
	tree, err := folder.New(dir)
	if err != nil {
		return err
	}
	_, pulled, err := wsync.New(p.store, wsync.Options{}).Pull(ctx, "ws/pull", tree)
	if err == nil && pulled.Files != files {
		err = fmt.Errorf("pulled %d files", pulled.Files)
	}
	return err
}

// putEach reads and uploads every file by itself.
func (p *parts) putEach(ctx context.Context, dir, prefix string) error {
	return each(ctx, func(ctx context.Context, i int) error {
		b, err := os.ReadFile(filepath.Join(dir, name(i)))
		if err != nil {
			return err
		}
		_, err = p.store.Put(ctx, prefix+name(i), bytes.NewReader(b), int64(len(b)), wsync.PutOptions{})
		return err
	})
}

// getEach downloads and writes every file by itself.
func (p *parts) getEach(ctx context.Context, dir string) error {
	return each(ctx, func(ctx context.Context, i int) error {
		obj, err := p.store.Get(ctx, "raw/pull/"+name(i))
		if err != nil {
			return err
		}
		defer obj.Body.Close()
		b, err := io.ReadAll(obj.Body)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	})
}

func each(ctx context.Context, f func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(perFile)
	for i := range files {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}
