//go:build linux || darwin

package s3store_test

import (
	"errors"
	"strings"
	"testing"

	"slipway/devserver"
	"slipway/internal/hint"
	wsync "slipway/sync"
	"slipway/sync/s3store"
	"slipway/sync/wsynctest"
	"slipway/test/devprogram"
)

// gateway is versitygw in a child of this test.
func gateway(t testing.TB) *devserver.Servers {
	t.Helper()
	return gatewayOn(t, t.TempDir())
}

func gatewayOn(t testing.TB, dir string) *devserver.Servers {
	t.Helper()
	g, err := devserver.Start(t.Context(), devserver.Options{Programs: devprogram.Folder(t, devprogram.S3), S3: &devserver.S3{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close the gateway: %v", err)
		}
	})
	return g
}

// TestGateway: the contract holds before the self-test, which chooses how bodies are sealed, and after it.
func TestGateway(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *s3store.Store){
		"Content-MD5": func(*testing.T, *s3store.Store) {}, "signed SHA-256": selfTest,
	} {
		t.Run(name, func(t *testing.T) {
			g := gateway(t)
			s := open(t, g.Endpoint, g.AccessKey, g.SecretKey)
			prepare(t, s)
			if got := s.SealedBy(); got != name {
				t.Errorf("bodies are sealed by %s, want %s", got, name)
			}
			wsynctest.Run(t, func(*testing.T) wsync.Store { return s })
			selfTest(t, s)
			for o, err := range s.List(t.Context(), "selftest/") {
				t.Errorf("self-test left %s (%v)", o.Key, err)
			}
		})
	}
}

func selfTest(t *testing.T, s *s3store.Store) {
	t.Helper()
	if err := s.SelfTest(t.Context()); err != nil {
		t.Errorf("self-test: %v", err)
	}
}

// TestWrongSum: a checksum that the caller got wrong is one that a damaged body has.
func TestWrongSum(t *testing.T) {
	g := gateway(t)
	s := open(t, g.Endpoint, g.AccessKey, g.SecretKey)
	selfTest(t, s)
	if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), 1, wsync.PutOptions{SHA256: [32]byte{1}}); err == nil {
		t.Error("put under another body's checksum: got no error")
	}
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, wsync.ErrNotFound) {
		t.Errorf("get what was refused: got error %v, want %v", err, wsync.ErrNotFound)
	}
}

// TestErrorsName: each wrong setting gets its kind of error, a message of one line that says the cause, and a hint that names
// the setting.
func TestErrorsName(t *testing.T) {
	g := gateway(t)
	open(t, g.Endpoint, g.AccessKey, g.SecretKey)
	good := s3store.Config{Endpoint: g.Endpoint, Bucket: "bucket", AccessKey: g.AccessKey, SecretKey: g.SecretKey}
	for name, c := range map[string]struct {
		change func(*s3store.Config)
		want   error
		names  string
	}{
		"bucket":     {func(c *s3store.Config) { c.Bucket = "no-such-bucket" }, wsync.ErrNoBucket, "bucket setting"},
		"access key": {func(c *s3store.Config) { c.AccessKey = "nobody" }, wsync.ErrDenied, "access key"},
		"secret key": {func(c *s3store.Config) { c.SecretKey = "wrong" }, wsync.ErrDenied, "secret key"},
		"endpoint":   {func(c *s3store.Config) { c.Endpoint = "http://127.0.0.1:1" }, wsync.ErrUnavailable, "endpoint setting"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			s, err := s3store.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Put(t.Context(), "k", strings.NewReader("x"), 1, wsync.PutOptions{IfNoneMatch: true})
			if !errors.Is(err, c.want) || !strings.Contains(hint.Of(err), c.names) {
				t.Errorf("got error %v, want %v with a hint that names the %s", err, c.want, c.names)
			}
			if _, err = s.Get(t.Context(), "k"); !errors.Is(err, c.want) {
				t.Errorf("get: got error %v, want %v", err, c.want)
			}
			err = s.SelfTest(t.Context())
			if !errors.Is(err, c.want) || !strings.Contains(hint.Of(err), c.names) || !strings.Contains(err.Error(), cfg.Endpoint) {
				t.Errorf("self-test: got error %v, want %v that names the endpoint, with a hint that names the %s", err, c.want, c.names)
			}
			const most = 400
			if text := err.Error(); len(text) > most || strings.ContainsAny(text, "\n") || strings.Contains(text, "RequestID") {
				t.Errorf("self-test: got %d bytes, want one line of at most %d without the SDK's layers:\n%s", len(text), most, text)
			}
		})
	}
}
