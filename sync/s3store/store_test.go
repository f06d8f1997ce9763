package s3store_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	wsync "slipway/sync"
	"slipway/sync/s3store"
	"slipway/sync/wsynctest"
)

func TestMain(m *testing.M) {
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

// TestNew_Refuses: what no server could take is refused before one is asked, and no key is repeated.
func TestNew_Refuses(t *testing.T) {
	good := s3store.Config{Endpoint: "https://[::1]:7070/path", Region: "eu-west_1", Bucket: "My.bucket-1", AccessKey: "a", SecretKey: "s"}
	if _, err := s3store.New(good); err != nil {
		t.Errorf("%+v: got error %v", good, err)
	}
	for _, c := range []struct {
		change func(*s3store.Config)
		names  string
	}{
		{func(c *s3store.Config) { c.Endpoint = "s3:7070" }, "endpoint: want a URL"},
		{func(c *s3store.Config) { c.Endpoint = "127.0.0.1:7070" }, "endpoint: want a URL"},
		{func(c *s3store.Config) { c.Endpoint = "ftp://x" }, "endpoint: want a URL"},
		{func(c *s3store.Config) { c.Endpoint = "http://x:99999" }, "port 99999"},
		{func(c *s3store.Config) { c.Endpoint = "http://me:geheim@x" }, "without a user"},
		{func(c *s3store.Config) { c.Endpoint = "http://x?y" }, "endpoint: want a URL"},
		{func(c *s3store.Config) { c.Region = "mars west" }, "region"},
		{func(c *s3store.Config) { c.Bucket = "" }, "bucket: required"},
		{func(c *s3store.Config) { c.Bucket = "a/b" }, "bucket: want"},
		{func(c *s3store.Config) { c.AccessKey = "geheim\n" }, "access key"},
		{func(c *s3store.Config) { c.SecretKey = "geheim " }, "secret key"},
		{func(c *s3store.Config) { c.SecretKey = "" }, "both are required"},
		{func(c *s3store.Config) { c.AccessKey, c.SecretKey, c.SessionToken = "", "", "geheim" }, "no session token"},
		{func(c *s3store.Config) { c.SessionToken = "geheim\n" }, "session token"},
		{func(c *s3store.Config) { c.SSE = "rot13" }, "encryption: want AES256"},
		{func(c *s3store.Config) { c.SSE, c.SSEKMSKeyID = "AES256", "x" }, "encryption key"},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := s3store.New(cfg); err == nil || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%+v: got error %v, want one that names the %s", cfg, err, c.names)
		}
	}
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
