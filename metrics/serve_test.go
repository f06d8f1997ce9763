package metrics

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestListenNeedsAHost(t *testing.T) {
	for _, addr := range []string{":9464", ":0", "9464", "localhost", "[::]", "localhost:http", "127.0.0.1:99999", "unix:"} {
		ln, err := Listen(t.Context(), addr)
		if err == nil {
			ln.Close()
			t.Errorf("Listen(%q): nil, want an error", addr)
		} else if !strings.Contains(err.Error(), "metrics address") {
			t.Errorf("Listen(%q): %v, want it to name the setting", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "0.0.0.0:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		ln, err := Listen(t.Context(), addr)
		if err != nil {
			t.Errorf("Listen(%q): %v, want nil", addr, err)
			continue
		}
		ln.Close()
	}
}

func TestDefaultAddrIsLoopback(t *testing.T) {
	host, _, err := net.SplitHostPort(DefaultAddr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("DefaultAddr = %s, want loopback", DefaultAddr)
	}
}

func TestServeSaysThatAPortIsTaken(t *testing.T) {
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	err = Serve(t.Context(), ln.Addr().String(), Handler(HandlerConfig{}))
	if err == nil || !strings.Contains(err.Error(), "choose another metrics address") {
		t.Errorf("Serve = %v, want it to name the setting", err)
	}
}

// TestServeFinishesOpenRequests stops the server in the middle of a request.
func TestServeFinishesOpenRequests(t *testing.T) {
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop()
		<-time.After(50 * time.Millisecond) // Serve is on its way out meanwhile
		_, _ = io.WriteString(w, "whole")
	})
	served := make(chan error, 1)
	go func() { served <- ServeListener(ctx, ln, h) }()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != "whole" {
		t.Errorf("body = %q, want whole", body)
	}
	if err := <-served; err != nil {
		t.Errorf("ServeListener = %v, want nil", err)
	}
}
