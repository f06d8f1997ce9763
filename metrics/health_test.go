package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func passes(context.Context) error { return nil }

func fails(text string) func(context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

func get(t *testing.T, h http.Handler, method, path, accept string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestReadyz(t *testing.T) {
	yes := func() bool { return true }
	tests := []struct {
		name     string
		draining func() bool
		checks   []Check
		code     int
		body     string
	}{
		{"no checks", nil, nil, 200, "ok      draining\nready\n"},
		{
			"all pass", nil,
			[]Check{{Name: "nats", Run: passes}, {Name: "store", Run: passes}},
			200,
			"ok      nats\nok      store\nok      draining\nready\n",
		},
		{
			"one fails", nil,
			[]Check{{Name: "nats", Run: fails("connection refused")}, {Name: "store", Run: passes}},
			503,
			"failed  nats: connection refused\nok      store\nok      draining\nnot ready\n",
		},
		{
			"draining", yes,
			[]Check{{Name: "nats", Run: passes}},
			503,
			"ok      nats\nfailed  draining: the worker is stopping and takes no more jobs\nnot ready\n",
		},
		{
			"panic", nil,
			[]Check{{Name: "nats", Run: func(context.Context) error { panic("ouch") }}},
			503,
			"failed  nats: the check panicked: ouch\nok      draining\nnot ready\n",
		},
		{
			"an error with lines, escapes and a password", nil,
			[]Check{{Name: "nats", Run: fails("dial nats://bob:secret@host\n\x1b[31mready\xff")}},
			503,
			"failed  nats: dial nats://***@host  [31mready?\nok      draining\nnot ready\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := Handler(HandlerConfig{Health: NewHealth(t.Context(), tt.draining, tt.checks...)})
			w := get(t, h, http.MethodGet, "/readyz", "*/*")
			if w.Code != tt.code || w.Body.String() != tt.body {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Body, tt.code, tt.body)
			}
			wantReadyJSON(t, h, tt.code, len(tt.checks)+1)
		})
	}
}

// wantReadyJSON checks that /readyz says the same to a program.
func wantReadyJSON(t *testing.T, h http.Handler, code, checks int) {
	t.Helper()
	w := get(t, h, http.MethodGet, "/readyz", "application/json")
	var got struct {
		Ready  bool
		Checks []Status
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("JSON: %v in %q", err, w.Body)
	}
	if w.Code != code || got.Ready != (code == 200) || len(got.Checks) != checks {
		t.Errorf("JSON: got %d %+v, want %d and %d checks", w.Code, got, code, checks)
	}
}

func TestRoutes(t *testing.T) {
	reg := prometheus.NewRegistry()
	New(reg)
	h := Handler(HandlerConfig{Gatherer: reg})
	tests := []struct {
		method, path string
		code         int
		contains     string
	}{
		{http.MethodGet, "/metrics", 200, "slipway_leftovers_total 0"},
		{http.MethodGet, "/livez", 200, "ok"},
		{http.MethodHead, "/livez", 200, ""},
		{http.MethodGet, "/readyz", 200, "ready"},
		{http.MethodPost, "/readyz", 405, ""},
		{http.MethodPost, "/metrics", 405, ""},
		{http.MethodGet, "/", 404, ""},
		{http.MethodGet, "/metrics/../debug/pprof", 307, ""},
		{http.MethodGet, "/debug/pprof/", 404, ""},
	}
	for _, tt := range tests {
		w := get(t, h, tt.method, tt.path, "")
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.contains) {
			t.Errorf("%s %s = %d %.200q, want %d with %q", tt.method, tt.path, w.Code, w.Body, tt.code, tt.contains)
		}
	}
	if w := get(t, Handler(HandlerConfig{}), http.MethodGet, "/metrics", ""); w.Code != 404 {
		t.Errorf("/metrics without a gatherer = %d, want 404", w.Code)
	}
}

func TestChecksRunAtOnceAndAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		slow := func(context.Context) error {
			runs.Add(1)
			<-time.After(time.Second)
			return nil
		}
		h := NewHealth(t.Context(), nil, Check{Name: "nats", Run: slow}, Check{Name: "store", Run: slow})
		start := time.Now()
		for range 10 {
			go h.Ready()
		}
		if _, ok := h.Ready(); !ok {
			t.Error("not ready, want ready")
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("took %v, want 1s: side by side", got)
		}
		<-time.After(checkAge - time.Nanosecond)
		h.Ready()
		if got := runs.Load(); got != 2 {
			t.Errorf("%d runs within the age, want 2: one of each check", got)
		}
		<-time.After(time.Nanosecond)
		h.Ready()
		if got := runs.Load(); got != 4 {
			t.Errorf("%d runs after the age, want 4", got)
		}
	})
}

func TestCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		release := make(chan struct{})
		h := NewHealth(t.Context(), nil,
			Check{Name: "polite", Timeout: time.Second, Run: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}},
			Check{Name: "deaf", Timeout: time.Second, Run: func(context.Context) error {
				runs.Add(1)
				<-release
				return nil
			}})
		for range 3 {
			start := time.Now()
			statuses, ok := h.Ready()
			if ok || statuses[0].OK || statuses[1].Error != "no answer within 1s" {
				t.Errorf("statuses = %+v, want both to fail", statuses)
			}
			if got := time.Since(start); got > 1250*time.Millisecond {
				t.Errorf("took %v, want at most 1.25s", got)
			}
		}
		if got := runs.Load(); got != 1 {
			t.Errorf("the deaf check was started %d times, want once", got)
		}
		close(release)
		synctest.Wait()
		if statuses, _ := h.Ready(); !statuses[1].OK {
			t.Errorf("deaf = %+v after it returned, want ok", statuses[1])
		}
	})
}

func TestProbeThatLeavesDoesNotSpoilTheOthers(t *testing.T) {
	h := Handler(HandlerConfig{Health: NewHealth(t.Context(), nil, Check{Name: "nats", Run: func(ctx context.Context) error { return ctx.Err() }})})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	if w.Code != 200 {
		t.Errorf("code = %d %q, want 200: the check does not run on the request's context", w.Code, w.Body)
	}
}

func TestReadyIsAMetric(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewHealth(t.Context(), nil, Check{Name: "nats", Run: passes}, Check{Name: "engine", Run: fails("away")}))
	got := series(t, reg)
	for key, want := range map[string]float64{
		`slipway_ready{check="nats"}`: 1, `slipway_ready{check="engine"}`: 0, `slipway_ready{check="draining"}`: 1,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s = %v (%v), want %v", key, v, ok, want)
		}
	}
}

func TestNewHealthRefusesNames(t *testing.T) {
	for _, names := range [][]string{{""}, {"nats", "nats"}, {"draining"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q: no panic", names)
				}
			}()
			var checks []Check
			for _, n := range names {
				checks = append(checks, Check{Name: n, Run: passes})
			}
			NewHealth(t.Context(), nil, checks...)
		}()
	}
}

func TestDiskCheck(t *testing.T) {
	dir := t.TempDir()
	if err := DiskCheck(dir, 1).Run(t.Context()); err != nil {
		t.Errorf("one byte: %v, want nil", err)
	}
	if err := DiskCheck(dir, 1<<62).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Errorf("4 EiB: %v, want an error that says what to do", err)
	}
	if err := DiskCheck(dir+"/absent", 1).Run(t.Context()); err == nil {
		t.Error("a missing folder: nil, want an error")
	}
}
