package wsynctest

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // an ETag
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	wsync "slipway/sync"
)

// Store is a wsync.Store in memory. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	objects map[string]object
	version int
	faults  []*Fault
	calls   map[Op]int
	written int64
	read    int64
}

type object struct {
	data     []byte
	etag     string
	metadata map[string]string
	modified time.Time
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{objects: map[string]object{}, calls: map[Op]int{}}
}

var _ wsync.Store = (*Store)(nil)

// Get implements wsync.Store.
func (s *Store) Get(ctx context.Context, key string) (*wsync.Object, error) {
	return s.get(ctx, OpGet, key, 0, -1)
}

// GetRange implements wsync.Store.
func (s *Store) GetRange(ctx context.Context, key string, off, length int64) (*wsync.Object, error) {
	return s.get(ctx, OpGetRange, key, off, length)
}

func (s *Store) get(ctx context.Context, op Op, key string, off, length int64) (*wsync.Object, error) {
	f, err := s.begin(ctx, op, key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	o, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, wsync.ErrNotFound)
	}
	data := o.data
	if length >= 0 {
		data = data[min(off, int64(len(data))):]
		data = data[:min(length, int64(len(data)))]
	}
	size := int64(len(data))
	data = f.body(data)
	s.mu.Lock()
	s.read += int64(len(data))
	s.mu.Unlock()
	return &wsync.Object{
		ObjectInfo: wsync.ObjectInfo{Key: key, ETag: o.etag, Size: size, Modified: o.modified},
		Metadata:   maps.Clone(o.metadata),
		Body:       f.reader(data),
	}, f.after()
}

// Put implements wsync.Store.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts wsync.PutOptions) (string, error) {
	f, err := s.begin(ctx, OpPut, key)
	if err != nil {
		return "", err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("put %s: rewind: %w", key, err)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", fmt.Errorf("put %s: read the body: %w", key, err)
	}
	if int64(len(data)) != size {
		return "", fmt.Errorf("put %s: body has %d bytes, not %d", key, len(data), size)
	}
	if known := opts.SHA256; known != [32]byte{} && known != sha256.Sum256(data) {
		return "", fmt.Errorf("put %s: body is not the one of PutOptions.SHA256", key)
	}
	etag, err := s.put(key, data, opts)
	if err != nil {
		return "", err
	}
	if err := f.after(); err != nil {
		return "", err
	}
	return etag, nil
}

func (s *Store) put(key string, data []byte, opts wsync.PutOptions) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[key]
	if opts.IfNoneMatch && ok || opts.IfMatch != "" && old.etag != opts.IfMatch {
		return "", fmt.Errorf("put %s: %w", key, wsync.ErrPrecondition)
	}
	s.version++
	o := object{data: data, metadata: maps.Clone(opts.Metadata), modified: time.Now().UTC()}
	o.etag = fmt.Sprintf("%q", fmt.Sprintf("%x-%d", md5.Sum(data), s.version)) //nolint:gosec // see the import
	s.objects[key] = o
	s.written += int64(len(data))
	return o.etag, nil
}

// PutStream implements wsync.Store.
func (s *Store) PutStream(ctx context.Context, key string, body io.Reader, _ int64) error {
	f, err := s.begin(ctx, OpPutStream, key)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("put %s: read the body: %w", key, err)
	}
	if _, err := s.put(key, data, wsync.PutOptions{}); err != nil {
		return err
	}
	return f.after()
}

// Delete implements wsync.Store.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		f, err := s.begin(ctx, OpDelete, key)
		if err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.objects, key)
		s.mu.Unlock()
		if err := f.after(); err != nil {
			return err
		}
	}
	return nil
}

// List implements wsync.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[wsync.ObjectInfo, error] {
	return func(yield func(wsync.ObjectInfo, error) bool) {
		if _, err := s.begin(ctx, OpList, prefix); err != nil {
			yield(wsync.ObjectInfo{}, err)
			return
		}
		for _, key := range s.Keys(prefix) {
			s.mu.Lock()
			o, ok := s.objects[key]
			s.mu.Unlock()
			info := wsync.ObjectInfo{Key: key, ETag: o.etag, Size: int64(len(o.data)), Modified: o.modified}
			if ok && !yield(info, nil) {
				return
			}
		}
	}
}

// begin counts a call and lets it suffer the first fault that matches.
func (s *Store) begin(ctx context.Context, op Op, key string) (*Fault, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", op, key, wsync.ErrUnavailable, err)
	}
	s.mu.Lock()
	s.calls[op]++
	var f *Fault
	for i, c := range s.faults {
		if c.matches(op, key) {
			copied := *c
			f = &copied
			if c.Times--; c.Times <= 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
			break
		}
	}
	s.mu.Unlock()
	return f, f.before(ctx)
}

// Keys lists what is stored below prefix, sorted.
func (s *Store) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.objects {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Object returns a copy of an object's content, nil if there is none.
func (s *Store) Object(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return nil
	}
	return append([]byte{}, o.data...)
}

// Replace puts content in the place of an object's, behind the back of everyone: what a disk or
// another tool might do. It keeps ETag and metadata.
func (s *Store) Replace(key string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return errors.New("replace " + key + ": no such object")
	}
	o.data = bytes.Clone(content)
	s.objects[key] = o
	return nil
}

// Counts tells how often each operation was called, and how many bytes went in and out, since the last ResetCounts.
func (s *Store) Counts() (calls map[Op]int, written, read int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls), s.written, s.read
}

// ResetCounts starts counting anew.
func (s *Store) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.written, s.read = map[Op]int{}, 0, 0
}
