package s3store_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	wsync "slipway/sync"
	"slipway/sync/s3store"
	"slipway/sync/wsynctest"
)

// TestRetries: what can be repeated is repeated; a conditional write is sent once.
func TestRetries(t *testing.T) {
	var fail atomic.Int64
	status := http.StatusServiceUnavailable
	var puts atomic.Int64
	s := fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				puts.Add(1)
			}
			if fail.Add(-1) >= 0 {
				io.Copy(io.Discard, r.Body) //nolint:errcheck // the test's own client
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	put := func(opts wsync.PutOptions) error {
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), 1, opts)
		return err
	}
	for _, status = range []int{http.StatusServiceUnavailable, http.StatusConflict} {
		fail.Store(2)
		if err := put(wsync.PutOptions{}); err != nil {
			t.Errorf("put after two answers %d: %v", status, err)
		}
	}
	puts.Store(0)
	fail.Store(1)
	if err := put(wsync.PutOptions{IfNoneMatch: true}); err == nil || puts.Load() != 1 {
		t.Errorf("conditional put: got error %v after %d requests, want one after 1", err, puts.Load())
	}
	status = http.StatusServiceUnavailable
	fail.Store(1)
	if err := put(wsync.PutOptions{IfNoneMatch: true}); !errors.Is(err, wsync.ErrUnavailable) {
		t.Errorf("conditional put at a server that fails: got error %v, want %v", err, wsync.ErrUnavailable)
	}
}

// TestSelfTestRefuses: a server that drops a condition, or takes damaged bodies, must be found out.
func TestSelfTestRefuses(t *testing.T) {
	for _, header := range []string{"If-None-Match", "If-Match", "Content-Md5"} {
		t.Run(header, func(t *testing.T) {
			s := fake(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del(header)
					next.ServeHTTP(w, r)
				})
			})
			if err := s.SelfTest(t.Context()); !errors.Is(err, wsync.ErrUnsafeStore) {
				t.Errorf("got error %v, want %v", err, wsync.ErrUnsafeStore)
			}
		})
	}
}

// TestDeleteErrors: the answer to a deletion is 200 even if it lists failures.
func TestDeleteErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`) //nolint:errcheck // the test's own client
	}))
	defer server.Close()
	s, err := s3store.New(s3store.Config{Endpoint: server.URL, Bucket: "b", AccessKey: "a", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Delete(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("got error %v, want the one of the key", err)
	}
}

// TestAbort: parts of an upload that fails are given up.
func TestAbort(t *testing.T) {
	var aborted, completed atomic.Bool
	s := fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.URL.Query().Has("uploadId")
			aborted.CompareAndSwap(false, id && r.Method == http.MethodDelete)
			completed.CompareAndSwap(false, id && r.Method == http.MethodPost)
			next.ServeHTTP(w, r)
		})
	})
	errRead := errors.New("gone")
	err := s.PutStream(t.Context(), "k", io.MultiReader(bytes.NewReader(make([]byte, 40<<20)), failing{errRead}), 50<<20)
	if !errors.Is(err, errRead) || !aborted.Load() || completed.Load() {
		t.Errorf("got error %v, aborted %v, completed %v; want %v, true, false", err, aborted.Load(), completed.Load(), errRead)
	}
}

// TestLostCompletion: the answer to a completion is lost, and its repeat finds no upload.
func TestLostCompletion(t *testing.T) {
	for _, done := range []bool{true, false} {
		var lost atomic.Bool
		s := fake(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") && lost.CompareAndSwap(false, true) {
					if !done {
						r.Method = http.MethodDelete // it is gone for another reason
					}
					next.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			})
		})
		err := s.PutStream(t.Context(), "k", bytes.NewReader(make([]byte, 20<<20)), 20<<20)
		if done && err != nil || !done && !errors.Is(err, wsync.ErrUnavailable) || !lost.Load() {
			t.Errorf("completed %t: got error %v (answer lost: %t)", done, err, lost.Load())
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestConfigNamesFields(t *testing.T) {
	_, err := s3store.New(s3store.Config{Endpoint: "localhost:9000", AccessKey: "half"})
	for _, want := range []string{"endpoint", "bucket", "access key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that names the %s", err, want)
		}
	}
}

// TestLostReply: the reply of the head's write is lost on the wire, and the push succeeds all the same.
func TestLostReply(t *testing.T) {
	var lose atomic.Bool
	s := fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/.sandbox-state") && lose.CompareAndSwap(true, false) {
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	syncer := wsync.New(s, wsync.Options{})
	tree := wsynctest.NewFolder(t, map[string]string{"a": "1"})
	base, err := syncer.Open(t.Context(), "ws")
	if err != nil {
		t.Fatal(err)
	}
	lose.Store(true)
	pushed, err := syncer.Push(t.Context(), base, tree, wsync.PushOptions{})
	if err != nil || lose.Load() {
		t.Fatalf("push: %v (reply lost: %v)", err, !lose.Load())
	}
	if head, err := syncer.Open(t.Context(), "ws"); err != nil || head.Commit != pushed.Commit {
		t.Errorf("head: got %v, %v, want commit %s", head, err, pushed.Commit)
	}
}
