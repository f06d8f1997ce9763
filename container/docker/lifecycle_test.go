package docker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// TestCanceledCreate: an engine goes on with a create whose client is gone, so a box that
// nobody wants any more appears later, and nobody would know its name.
func TestCanceledCreate(t *testing.T) {
	creating, removed := make(chan struct{}), make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.44")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.HasSuffix(r.URL.Path, "/containers/create"):
			close(creating)
			select { // either way it makes the container
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"Id":"late"}`)
		case r.Method == http.MethodDelete:
			removed <- path.Base(r.URL.Path)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"no such container"}`)
		}
	}))
	defer srv.Close()
	p, err := New(Config{Host: strings.Replace(srv.URL, "http", "tcp", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("canceled by a user")
	go func() { <-creating; cancel(enough) }()
	req := client.ContainerCreateOptions{Name: "slipway-x-1", Config: &mobycontainer.Config{Image: "x"}}
	if _, err := p.createContainer(ctx, req); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
	select {
	case got := <-removed:
		if got != "late" {
			t.Errorf("removed %q, want late", got)
		}
	default:
		t.Error("the container that the engine made was not removed")
	}
}
