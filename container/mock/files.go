package mock

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the contract's checksum for S3, no protection
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"slipway/container"
)

// files is the workspace of one box.
type files struct{ b *sandbox }

var _ container.Files = files{}

// do runs one operation while the box lives.
func (f files) do(ctx context.Context, op, path string, fn func(d *disk) error) error {
	f.b.p.record(OnFiles, f.b.spec.Name, op+" "+path)
	if err := f.b.enter(op + " " + path); err != nil {
		return err
	}
	defer f.b.running.Done()
	fault, err := f.b.p.fault(ctx, OnFiles)
	if fault.LoseBox {
		f.b.die(container.ErrBoxLost)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	if err := f.check(ctx); err != nil {
		return err
	}
	return fn(f.b.disk)
}

// check is asked between the parts of a long operation.
func (f files) check(ctx context.Context) error {
	select {
	case <-f.b.done:
		return f.b.ended()
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}

func (f files) Stat(ctx context.Context, path string) (info container.FileInfo, err error) {
	err = f.do(ctx, "stat", path, func(d *disk) (err error) {
		info, err = d.stat(path)
		return err
	})
	return info, err
}

func (f files) Read(ctx context.Context, path string, w io.Writer, limit int64) (info container.FileInfo, err error) {
	err = f.do(ctx, "read", path, func(d *disk) error {
		i, content, err := d.open(path)
		if err != nil {
			return err
		}
		if limit > 0 && i.Size > limit {
			return fmt.Errorf("%w: %s has %d bytes, more than %d", container.ErrTooLarge, path, i.Size, limit)
		}
		info = i
		_, err = w.Write(content)
		return err
	})
	return info, err
}

func (f files) Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	return f.do(ctx, "write", path, func(d *disk) error {
		content, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := f.check(ctx); err != nil {
			return err
		}
		_, err = d.write(path, content, mode, time.Time{})
		return err
	})
}

func (f files) List(ctx context.Context, path string) (infos []container.FileInfo, err error) {
	err = f.do(ctx, "list", path, func(d *disk) (err error) {
		infos, err = d.list(path)
		return err
	})
	return infos, err
}

func (f files) Mkdir(ctx context.Context, path string, mode fs.FileMode) error {
	return f.do(ctx, "mkdir", path, func(d *disk) error {
		_, err := d.mkdir(path, mode, time.Time{})
		return err
	})
}

func (f files) Delete(ctx context.Context, path string) error {
	return f.do(ctx, "delete", path, func(d *disk) error { return d.delete(path) })
}

func (f files) Walk(ctx context.Context, fn func(container.FileInfo) error) error {
	return f.do(ctx, "walk", ".", func(d *disk) error { return f.walk(ctx, d, ".", fn) })
}

func (f files) walk(ctx context.Context, d *disk, dir string, fn func(container.FileInfo) error) error {
	infos, err := d.list(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := f.check(ctx); err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
		if info.Type == container.TypeDir {
			if err := f.walk(ctx, d, info.Path, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f files) Hash(ctx context.Context, paths []string, fn func(container.Sum) error) error {
	return f.do(ctx, "hash", fmt.Sprint(len(paths), " files"), func(d *disk) error {
		for _, path := range paths {
			if err := f.check(ctx); err != nil {
				return err
			}
			sum := container.Sum{Path: path}
			content, err := d.read(path)
			if sum.Err = err; err == nil {
				sum.Size, sum.MD5, sum.SHA256 = int64(len(content)), md5.Sum(content), sha256.Sum256(content) //nolint:gosec // see import
			}
			if err := fn(sum); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f files) ReadAll(ctx context.Context, paths []string, fn func(container.FileContent) error) error {
	return f.do(ctx, "read all", fmt.Sprint(len(paths), " files"), func(d *disk) error {
		for _, path := range paths {
			if err := f.check(ctx); err != nil {
				return err
			}
			if err := fn(open(d, path)); err != nil {
				return err
			}
		}
		return nil
	})
}

func open(d *disk, path string) container.FileContent {
	info, content, err := d.open(path)
	if err != nil {
		return container.FileContent{Info: container.FileInfo{Path: path}, Err: err}
	}
	return container.FileContent{
		Info: info, Reader: bytes.NewReader(content),
		After: func() (container.FileInfo, error) { return d.stat(path) },
	}
}

func (f files) WriteAll(ctx context.Context, entries iter.Seq2[container.NewFile, error]) (infos []container.FileInfo, err error) {
	folders := map[int]container.NewFile{}
	err = f.do(ctx, "write all", "", func(d *disk) error {
		for n, err := range entries {
			if err != nil {
				return err
			}
			if err := f.check(ctx); err != nil {
				return err
			}
			info, err := put(d, n)
			if err != nil {
				return &container.FileError{Path: n.Path, Err: err}
			}
			infos = append(infos, info)
			if n.Type == container.TypeDir && !n.ModTime.IsZero() {
				folders[len(infos)-1] = n
			}
		}
		for i, n := range folders { // what was put into them has changed their times
			if infos[i], err = d.mkdir(n.Path, n.Mode, n.ModTime); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

func put(d *disk, n container.NewFile) (container.FileInfo, error) {
	switch n.Type {
	case container.TypeDir:
		return d.mkdir(n.Path, n.Mode, n.ModTime)
	case container.TypeSymlink:
		return d.link(n.Path, n.Target, n.ModTime)
	case container.TypeFile:
		content := make([]byte, n.Size)
		if n.Size > 0 {
			if _, err := io.ReadFull(n.Content, content); err != nil {
				return container.FileInfo{}, fmt.Errorf("read content of %s: %w", n.Path, err)
			}
		}
		return d.write(n.Path, content, n.Mode, n.ModTime)
	}
	return container.FileInfo{}, fmt.Errorf("%w: %s: type %q can't be made", container.ErrUnsupported, n.Path, n.Type)
}
