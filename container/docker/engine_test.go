package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"slipway/container"
	"slipway/internal/hint"
)

func TestCallTypesErrors(t *testing.T) {
	p, err := New(Config{Host: "tcp://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := []struct {
		name string
		ctx  context.Context
		fn   func(context.Context) error
		is   error
		not  error
	}{
		{"engine hangs", t.Context(), hang, container.ErrEngineUnavailable, context.DeadlineExceeded},
		{"caller leaves", canceled, hang, context.Canceled, container.ErrEngineUnavailable},
		{"engine says no", t.Context(), func(context.Context) error { return errdefs.ErrNotFound }, errdefs.ErrNotFound, container.ErrEngineUnavailable},
		{"connection breaks", t.Context(), func(context.Context) error { return io.ErrUnexpectedEOF }, container.ErrEngineUnavailable, nil},
		{"fine", t.Context(), func(context.Context) error { return nil }, nil, nil},
	}
	for _, tt := range tests {
		err := p.call(tt.ctx, "try", 20*time.Millisecond, tt.fn)
		if !errors.Is(err, tt.is) || tt.not != nil && errors.Is(err, tt.not) {
			t.Errorf("%s: got %v, want %v and not %v", tt.name, err, tt.is, tt.not)
		}
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	tests := []struct {
		name, os, api string
		is            error
		want          string
	}{
		{"good", "linux", "1.41", nil, ""},
		{"windows", "windows", "1.44", container.ErrUnsupported, "switch it to Linux containers"},
		{"old", "linux", "1.30", container.ErrUnsupported, "1.40"},
	}
	for _, tt := range tests {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Ostype", tt.os)
			w.Header().Set("Api-Version", tt.api)
			_, _ = io.WriteString(w, "OK")
		}))
		p, err := New(Config{Host: strings.Replace(srv.URL, "http", "tcp", 1)})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(t.Context()); !errors.Is(err, tt.is) || !strings.Contains(fmt.Sprint(err)+hint.Of(err), tt.want) {
			t.Errorf("%s: got %v, want %v naming %q", tt.name, err, tt.is, tt.want)
		}
		_ = p.Close()
		srv.Close()
	}
}

func TestNoEngine(t *testing.T) {
	p, err := New(Config{Host: "unix://" + t.TempDir() + "/none.sock"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	ctx, spec := t.Context(), container.Spec{Name: "slipway-a-1", Image: "x"}
	_, prepareErr := p.Prepare(ctx, container.ImageRequest{Image: "x"})
	_, pullErr := p.Prepare(ctx, container.ImageRequest{Image: "x", Pull: container.PullAlways})
	_, createErr := p.Create(ctx, spec)
	_, getErr := p.Get(ctx, "x")
	_, listErr := p.List(ctx, nil)
	_, engineErr := p.Engine(ctx)
	for name, err := range map[string]error{
		"check": p.Check(ctx), "prepare": prepareErr, "pull": pullErr, "create": createErr, "get": getErr,
		"list": listErr, "remove": p.Remove(ctx, "x"), "engine": engineErr,
	} {
		if !errors.Is(err, container.ErrEngineUnavailable) || !strings.Contains(hint.Of(err), "DOCKER_HOST") {
			t.Errorf("%s: got %v, want ErrEngineUnavailable with a hint that names DOCKER_HOST", name, err)
		}
	}
}

func TestShortcomings(t *testing.T) {
	if got := shortcomings(true, true, true, []string{"name=seccomp,profile=default"}); len(got) != 0 {
		t.Errorf("a good engine: got %v", got)
	}
	if got := shortcomings(false, false, false, nil); len(got) != 4 {
		t.Errorf("a bad engine: got %v, want 4 warnings", got)
	}
}
