package wsynctest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	wsync "slipway/sync"
)

// Factory returns a store that is empty below every prefix it was not asked for before.
type Factory func(t *testing.T) wsync.Store

// Run checks that a store keeps the contract of wsync.Store. Each case works below a prefix of its own.
func Run(t *testing.T, factory Factory) {
	cases := map[string]func(*suite){
		"PutGet": (*suite).putGet, "Empty": (*suite).empty, "Missing": (*suite).missing, "Range": (*suite).ranges,
		"Metadata": (*suite).metadata, "CreateOnly": (*suite).createOnly, "Swap": (*suite).swap, "CreateRace": (*suite).createRace,
		"SwapRace": (*suite).swapRace, "Stream": (*suite).stream, "StreamFails": (*suite).streamFails, "Delete": (*suite).deletes,
		"List": (*suite).list, "Canceled": (*suite).canceled, "Rewind": (*suite).rewind, "KnownSum": (*suite).knownSum,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			run(&suite{T: t, store: factory(t), prefix: strings.ToLower(name) + "/"})
		})
	}
}

// suite is one case under way.
type suite struct {
	*testing.T
	store  wsync.Store
	prefix string
}

func (s *suite) put(key, content string, opts wsync.PutOptions) (string, error) {
	return s.store.Put(s.Context(), s.prefix+key, strings.NewReader(content), int64(len(content)), opts)
}

func (s *suite) mustPut(key, content string) string {
	s.Helper()
	etag, err := s.put(key, content, wsync.PutOptions{})
	if err != nil {
		s.Fatalf("put %s: %v", key, err)
	}
	if etag == "" {
		s.Fatalf("put %s: no ETag", key)
	}
	return etag
}

func (s *suite) get(key string) (string, *wsync.Object) {
	s.Helper()
	o, err := s.store.Get(s.Context(), s.prefix+key)
	if err != nil {
		s.Fatalf("get %s: %v", key, err)
	}
	b, err := io.ReadAll(o.Body)
	if err = errors.Join(err, o.Body.Close()); err != nil {
		s.Fatalf("get %s: %v", key, err)
	}
	return string(b), o
}

func (s *suite) want(key, want string) {
	s.Helper()
	if got, o := s.get(key); got != want || o.Size != int64(len(want)) {
		s.Errorf("get %s: got %d bytes (size %d), want %d", key, len(got), o.Size, len(want))
	}
}

func (s *suite) wantErr(what string, got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func (s *suite) putGet() {
	first := s.mustPut("a", "one")
	s.want("a", "one")
	second := s.mustPut("a", "two")
	s.want("a", "two")
	if _, o := s.get("a"); o.ETag != second || second == first {
		s.Errorf("ETag: got %s after puts that returned %s and %s", o.ETag, first, second)
	}
	if _, o := s.get("a"); time.Since(o.Modified).Abs() > time.Hour {
		s.Errorf("modified: got %v, want about now", o.Modified)
	}
}

func (s *suite) empty() {
	s.mustPut("empty", "")
	s.want("empty", "")
}

func (s *suite) missing() {
	_, err := s.store.Get(s.Context(), s.prefix+"none")
	s.wantErr("get", err, wsync.ErrNotFound)
	_, err = s.store.GetRange(s.Context(), s.prefix+"none", 0, 5)
	s.wantErr("get range", err, wsync.ErrNotFound)
}

func (s *suite) ranges() {
	s.mustPut("r", "0123456789")
	for _, c := range []struct {
		off, length int64
		want        string
	}{{0, 3, "012"}, {4, 1, "4"}, {7, 3, "789"}, {7, 10, "789"}, {0, 10, "0123456789"}, {10, 5, ""}, {50, 1, ""}} {
		o, err := s.store.GetRange(s.Context(), s.prefix+"r", c.off, c.length)
		if err != nil {
			s.Errorf("range %d+%d: %v", c.off, c.length, err)
			continue
		}
		b, err := io.ReadAll(o.Body)
		if err = errors.Join(err, o.Body.Close()); err != nil || string(b) != c.want || o.Size != int64(len(c.want)) {
			s.Errorf("range %d+%d: got %q (size %d, error %v), want %q", c.off, c.length, b, o.Size, err, c.want)
		}
	}
}

func (s *suite) metadata() {
	if _, err := s.put("m", "x", wsync.PutOptions{Metadata: map[string]string{"commit": "01ABC"}}); err != nil {
		s.Fatal(err)
	}
	if _, o := s.get("m"); o.Metadata["commit"] != "01ABC" {
		s.Errorf("metadata: got %v, want commit=01ABC", o.Metadata)
	}
}

func (s *suite) knownSum() {
	known := wsync.PutOptions{SHA256: sha256.Sum256([]byte("content"))}
	if _, err := s.put("known", "content", known); err != nil {
		s.Fatal(err)
	}
	known.IfNoneMatch = true
	if _, err := s.put("known-new", "content", known); err != nil {
		s.Fatal(err)
	}
	for _, key := range []string{"known", "known-new"} {
		if got, _ := s.get(key); got != "content" {
			s.Errorf("%s: got %q, want what was put", key, got)
		}
	}
}

func (s *suite) stream() {
	for _, size := range []int{0, 5, 1 << 20, 21<<20 + 3} {
		content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		key := fmt.Sprint("stream", size)
		if err := s.store.PutStream(s.Context(), s.prefix+key, io.MultiReader(bytes.NewReader(content)), int64(size)); err != nil {
			s.Fatalf("put stream of %d bytes: %v", size, err)
		}
		s.want(key, string(content))
	}
	if err := s.store.PutStream(s.Context(), s.prefix+"short", strings.NewReader("abc"), 1000); err != nil {
		s.Errorf("put stream that ends early: %v", err)
	}
	s.want("short", "abc")
}

// streamFails: what was not read whole must not become an object, neither small nor in parts.
func (s *suite) streamFails() {
	errRead := errors.New("disk on fire")
	for _, size := range []int{100, 20 << 20} {
		key := fmt.Sprint("fails", size)
		body := io.MultiReader(bytes.NewReader(make([]byte, size-1)), errReader{errRead})
		err := s.store.PutStream(s.Context(), s.prefix+key, body, int64(size))
		s.wantErr("put stream whose body fails", err, errRead)
		_, err = s.store.Get(s.Context(), s.prefix+key)
		s.wantErr("get after it", err, wsync.ErrNotFound)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func (s *suite) deletes() {
	s.mustPut("d1", "x")
	s.mustPut("d2", "x")
	s.mustPut("d3", "x")
	if err := s.store.Delete(s.Context(), s.prefix+"d1", s.prefix+"d2", s.prefix+"never was"); err != nil {
		s.Fatalf("delete: %v", err)
	}
	_, err := s.store.Get(s.Context(), s.prefix+"d1")
	s.wantErr("get after delete", err, wsync.ErrNotFound)
	s.want("d3", "x")
	if err := s.store.Delete(s.Context()); err != nil {
		s.Errorf("delete of nothing: %v", err)
	}
}

func (s *suite) list() {
	want := []string{"l/a", "l/a-b", "l/b/c", "l/z"}
	for _, k := range []string{"l/z", "l/a", "other", "l/b/c", "l/a-b"} {
		s.mustPut(k, k)
	}
	var got []string
	for o, err := range s.store.List(s.Context(), s.prefix+"l/") {
		if err != nil {
			s.Fatalf("list: %v", err)
		}
		key := strings.TrimPrefix(o.Key, s.prefix)
		got = append(got, key)
		if o.Size != int64(len(key)) || o.ETag == "" || o.Modified.IsZero() {
			s.Errorf("list: incomplete %+v", o)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("list: got %q, want %q", got, want)
	}
	for _, err := range s.store.List(s.Context(), s.prefix+"l/") {
		if err != nil {
			s.Errorf("list: %v", err)
		}
		break // leaving early is allowed
	}
}

func (s *suite) canceled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.store.Put(ctx, s.prefix+"x", strings.NewReader("x"), 1, wsync.PutOptions{})
	s.wantErr("put", err, context.Canceled)
	_, err = s.store.Get(ctx, s.prefix+"x")
	s.wantErr("get", err, context.Canceled)
}

// rewind: a body that was read already is sent from its start.
func (s *suite) rewind() {
	r := strings.NewReader("whole")
	if _, err := io.CopyN(io.Discard, r, 3); err != nil {
		s.Fatal(err)
	}
	if _, err := s.store.Put(s.Context(), s.prefix+"w", r, 5, wsync.PutOptions{}); err != nil {
		s.Fatal(err)
	}
	s.want("w", "whole")
}
