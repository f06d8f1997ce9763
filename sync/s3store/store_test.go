package s3store_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	wsync "slipway/sync"
	"slipway/sync/s3store"
	"slipway/sync/s3store/s3gateway"
	"slipway/sync/wsynctest"
)

func TestMain(m *testing.M) {
	s3gateway.Main()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fake is gofakes3 in this process, behind a handler that a test can put something before.
func fake(t *testing.T, around func(http.Handler) http.Handler) *s3store.Store {
	t.Helper()
	handler := gofakes3.New(s3mem.New()).Server()
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return open(t, server.URL, "key", "secret")
}

func open(t testing.TB, endpoint, access, secret string) *s3store.Store {
	t.Helper()
	s, err := s3store.New(s3store.Config{Endpoint: endpoint, Bucket: "bucket", AccessKey: access, SecretKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFakeServer(t *testing.T) {
	s := fake(t, nil)
	wsynctest.Run(t, func(*testing.T) wsync.Store { return s })
	if err := s.SelfTest(t.Context()); err != nil {
		t.Errorf("self-test: %v", err)
	}
	if got := s.SealedBy(); got != "Content-MD5" {
		t.Errorf("bodies are sealed by %s although this server only reads a Content-MD5", got)
	}
}
