package runner

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"slipway/container"
	wsync "slipway/sync"
)

// folderFiles is container.Files over a local folder.
type folderFiles struct {
	tree wsync.Tree
	dir  string
}

func (f folderFiles) full(p string) (string, error) {
	if !filepath.IsLocal(p) {
		return "", container.ErrPath
	}
	return filepath.Join(f.dir, p), nil
}

func (f folderFiles) Stat(context.Context, string) (container.FileInfo, error) {
	return container.FileInfo{}, container.ErrUnsupported
}

func (f folderFiles) Read(_ context.Context, p string, w io.Writer, _ int64) (container.FileInfo, error) {
	full, err := f.full(p)
	if err != nil {
		return container.FileInfo{}, err
	}
	b, err := os.ReadFile(full)
	if errors.Is(err, fs.ErrNotExist) {
		return container.FileInfo{}, container.ErrNotFound
	}
	if err == nil {
		_, err = w.Write(b)
	}
	return container.FileInfo{Path: p, Size: int64(len(b))}, err
}

func (f folderFiles) Write(_ context.Context, p string, r io.Reader, mode fs.FileMode) error {
	full, err := f.full(p)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	return os.WriteFile(full, b, mode)
}

func (f folderFiles) List(_ context.Context, p string) ([]container.FileInfo, error) {
	full, err := f.full(p)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, container.ErrNotFound
	}
	var out []container.FileInfo
	for _, e := range entries {
		i := container.FileInfo{Path: filepath.Join(p, e.Name()), Type: container.TypeFile}
		if e.IsDir() {
			i.Type = container.TypeDir
		}
		out = append(out, i)
	}
	return out, err
}

func (f folderFiles) Mkdir(_ context.Context, p string, mode fs.FileMode) error {
	full, err := f.full(p)
	if err != nil {
		return err
	}
	return os.MkdirAll(full, mode)
}

func (f folderFiles) Delete(_ context.Context, p string) error {
	full, err := f.full(p)
	if err != nil {
		return err
	}
	return os.RemoveAll(full)
}

func (f folderFiles) Walk(ctx context.Context, fn func(container.FileInfo) error) error {
	return f.tree.Walk(ctx, func(n wsync.Node) error { return fn(info(n)) })
}

func (f folderFiles) Hash(ctx context.Context, paths []string, fn func(container.Sum) error) error {
	return f.tree.Hash(ctx, paths, func(s wsync.Sum) error { return fn(container.Sum(s)) })
}

func (f folderFiles) ReadAll(ctx context.Context, paths []string, fn func(container.FileContent) error) error {
	return f.tree.ReadAll(ctx, paths, func(c wsync.Content) error {
		out := container.FileContent{Info: info(c.Node), Reader: c.Reader, Err: c.Err}
		if c.After != nil {
			out.After = func() (container.FileInfo, error) { n, err := c.After(); return info(n), err }
		}
		return fn(out)
	})
}

func (f folderFiles) WriteAll(ctx context.Context, entries iter.Seq2[container.NewFile, error]) ([]container.FileInfo, error) {
	nodes, err := f.tree.WriteAll(ctx, func(yield func(wsync.NewNode, error) bool) {
		for e, err := range entries {
			n := wsync.NewNode{
				Path: e.Path, Type: wsync.NodeType(e.Type), Mode: e.Mode, ModTime: e.ModTime,
				Size: e.Size, Target: e.Target, Content: e.Content,
			}
			if !yield(n, err) {
				return
			}
		}
	})
	var out []container.FileInfo
	for _, n := range nodes {
		out = append(out, info(n))
	}
	return out, err
}

func info(n wsync.Node) container.FileInfo {
	return container.FileInfo{
		Path: n.Path, Type: container.FileType(n.Type), Size: n.Size, Mode: n.Mode, ModTime: n.ModTime,
		ChangeTime: n.ChangeTime, Inode: n.Inode, Target: n.Target, Err: n.Err,
	}
}
