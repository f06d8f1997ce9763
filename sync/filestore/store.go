package filestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"slipway/internal/flock"
	wsync "slipway/sync"
)

// ErrInUse says that the folder is another Store's, of this process or of another one.
var ErrInUse = errors.New("the store's folder is in use")

// Store is a wsync.Store on a folder. It is safe for concurrent use.
type Store struct {
	dir  string
	root *os.Root
	lock *os.File
	mu   sync.Mutex // held from the look at an object to the change that the look allows
}

var _ wsync.Store = (*Store)(nil)

// Open returns the store in the folder dir, and makes the folder, its owner's alone, if it is missing. What a killed process
// left half written is removed. The caller calls Close. Errors: ErrInUse.
func Open(dir string) (*Store, error) {
	s, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return s, nil
}

func open(dir string) (_ *Store, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, root: root}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.lock, err = root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := flock.Try(s.lock); errors.Is(err, flock.ErrLocked) {
		return nil, ErrInUse
	} else if err != nil {
		return nil, err
	}
	return s, s.sweep()
}

// Close gives the folder back. The caller has ended all calls; open objects stay readable.
func (s *Store) Close() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	return errors.Join(err, s.root.Close())
}

// sweep removes what was never finished. It runs under the lock, so nobody is at work on it.
func (s *Store) sweep() error {
	entries, err := s.entries(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), draftPrefix) {
			if err := s.root.Remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Put implements wsync.Store. A body that is not opts.SHA256 or not of size bytes fails. A disk that is full, or broken, is
// an error without a sentinel of wsync.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts wsync.PutOptions) (string, error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", s.explain("put", key, fmt.Errorf("rewind the body: %w", err))
	}
	etag, err := s.put(ctx, key, newChecked(body, size, opts.SHA256), opts)
	return etag, s.explain("put", key, err)
}

// PutStream implements wsync.Store. It needs neither the size nor memory for parts.
func (s *Store) PutStream(ctx context.Context, key string, body io.Reader, _ int64) error {
	_, err := s.put(ctx, key, body, wsync.PutOptions{})
	return s.explain("put", key, err)
}

// put writes a draft and makes it the object.
func (s *Store) put(ctx context.Context, key string, body io.Reader, opts wsync.PutOptions) (etag string, err error) {
	name, err := pathOf(key)
	if err != nil {
		return "", err
	}
	t := trailer{ETag: rand.Text(), Metadata: lowerKeys(opts.Metadata)}
	draft := draftPrefix + t.ETag
	f, err := s.root.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	err = t.write(f, until{ctx, body})
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.publish(ctx, draft, name, opts)
	}
	if err != nil {
		return "", errors.Join(err, s.root.Remove(draft))
	}
	return t.ETag, nil
}

// publish renames a draft to an object's name if the conditions hold.
func (s *Store) publish(ctx context.Context, draft, name string, opts wsync.PutOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := alive(ctx); err != nil {
		return err
	}
	if opts.IfMatch != "" || opts.IfNoneMatch {
		now, err := s.etag(name)
		switch {
		case err != nil:
			return err
		case opts.IfNoneMatch && now != "", opts.IfMatch != "" && now != opts.IfMatch:
			return wsync.ErrPrecondition
		}
	}
	if err := s.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return s.root.Rename(draft, name)
}

// etag is that of the object that is there now, empty if there is none.
func (s *Store) etag(name string) (string, error) {
	f, t, _, err := s.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return t.ETag, f.Close()
}

// Delete implements wsync.Store. It goes on after an error.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, s.explain("delete", key, s.remove(ctx, key)))
	}
	return errors.Join(errs...)
}

// remove removes an object, and the folders that are empty then. A put makes its folders under the same mutex, so none
// goes from under it.
func (s *Store) remove(ctx context.Context, key string) error {
	name, err := pathOf(key)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := alive(ctx); err != nil {
		return err
	}
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if s.root.Remove(dir) != nil {
			break // it holds something else
		}
	}
	return nil
}

// alive is the error of a call whose context has ended.
func alive(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%w: %w", wsync.ErrUnavailable, err)
	}
	return nil
}

// explain says what was done, and what kind of error came of it.
func (s *Store) explain(verb, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wsync.ErrPrecondition), errors.Is(err, wsync.ErrNotFound), errors.Is(err, errKey):
		return fmt.Errorf("%s %q: %w", verb, key, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %q: %w", verb, key, wsync.ErrNotFound)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %q in %s: %w: %w", verb, key, s.dir, wsync.ErrDenied, err)
	}
	return fmt.Errorf("%s %q in %s: %w", verb, key, s.dir, err)
}
