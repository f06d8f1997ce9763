package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	wsync "slipway/sync"
)

// Get implements wsync.Store. ErrCorrupt if the file is no whole object.
func (s *Store) Get(ctx context.Context, key string) (*wsync.Object, error) {
	obj, err := s.get(ctx, key, 0, -1)
	return obj, s.explain("get", key, err)
}

// GetRange implements wsync.Store. ErrCorrupt if the file is no whole object.
func (s *Store) GetRange(ctx context.Context, key string, off, length int64) (*wsync.Object, error) {
	if off < 0 || length <= 0 {
		return nil, fmt.Errorf("get a range of %q: offset %d, length %d", key, off, length)
	}
	obj, err := s.get(ctx, key, off, length)
	return obj, s.explain("get a range of", key, err)
}

// get opens length bytes from off, or all from there if length is -1.
func (s *Store) get(ctx context.Context, key string, off, length int64) (*wsync.Object, error) {
	name, err := pathOf(key)
	if err != nil {
		return nil, err
	}
	if err := alive(ctx); err != nil {
		return nil, err
	}
	f, t, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	off = min(off, t.Size)
	size := t.Size - off
	if length >= 0 {
		size = min(size, length)
	}
	return &wsync.Object{
		ObjectInfo: wsync.ObjectInfo{Key: key, ETag: t.ETag, Size: size, Modified: info.ModTime().UTC()},
		Metadata:   t.Metadata,
		Body: struct {
			io.Reader
			io.Closer
		}{io.NewSectionReader(f, off, size), f},
	}, nil
}

// open opens an object's file and reads its trailer. It needs no mutex: a file under an object's name never changes.
func (s *Store) open(name string) (_ *os.File, t trailer, info fs.FileInfo, err error) {
	f, err := s.root.Open(name)
	if err != nil {
		return nil, t, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = t.read(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, t, nil, err
	}
	return f, t, info, nil
}

// List implements wsync.Store. It yields what was there when it began and is not deleted yet. The keys lie in memory.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[wsync.ObjectInfo, error] {
	return func(yield func(wsync.ObjectInfo, error) bool) {
		w := walk{store: s, prefix: prefix}
		if err := w.folder(ctx, ".", ""); err != nil {
			yield(wsync.ObjectInfo{}, s.explain("list", prefix, err))
			return
		}
		slices.Sort(w.keys) // the walk has a/b before a-, and an encoded byte before all others
		for _, key := range w.keys {
			obj, err := s.get(ctx, key, 0, -1)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				yield(wsync.ObjectInfo{}, s.explain("list", prefix, err))
				return
			}
			obj.Body.Close()
			if !yield(obj.ObjectInfo, nil) {
				return
			}
		}
	}
}

// walk collects the keys that begin with prefix.
type walk struct {
	store  *Store
	prefix string
	keys   []string
}

// folder walks dir, whose objects have keys that begin with above.
func (w *walk) folder(ctx context.Context, dir, above string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	entries, err := w.store.entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if below, ok := folderKey(above, e.Name()); ok && e.IsDir() {
			if !strings.HasPrefix(below, w.prefix) && !strings.HasPrefix(w.prefix, below) {
				continue
			}
			if err := w.folder(ctx, path.Join(dir, e.Name()), below); err != nil {
				return err
			}
		} else if key, ok := objectKey(above, e.Name()); ok && !e.IsDir() && strings.HasPrefix(key, w.prefix) {
			// What somebody else put into the folder is no object of ours.
			if name, err := pathOf(key); err == nil && name == path.Join(dir, e.Name()) {
				w.keys = append(w.keys, key)
			}
		}
	}
	return nil
}

// entries lists a folder, unsorted. One that is not there any more has none.
func (s *Store) entries(dir string) (entries []fs.DirEntry, err error) {
	f, err := s.root.Open(dir)
	if err == nil {
		defer f.Close()
		entries, err = f.ReadDir(-1)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}
