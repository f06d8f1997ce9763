package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/internal/hint"
)

// depot is a registry on this machine: an engine takes one on 127.0.0.1 without TLS.
type depot struct {
	host      string
	manifests atomic.Int32  // questions what a tag means
	hold      chan struct{} // blobs wait for it, if not nil
	password  string
}

func newDepot(t *testing.T, e engine) *depot {
	t.Helper()
	if !strings.HasPrefix(e.cli.DaemonHost(), "unix://") {
		t.Skip("needs an engine on this machine: its pulls must reach 127.0.0.1")
	}
	d := &depot{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pass, _ := r.BasicAuth(); d.password != "" && pass != d.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/manifests/") {
			d.manifests.Add(1)
		}
		if d.hold != nil && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			select {
			case <-d.hold:
			case <-r.Context().Done():
				return
			}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	d.host = strings.TrimPrefix(srv.URL, "http://")
	return d
}

// push puts a new image into the registry, and sees to it that the engine has forgotten it in the end.
func (d *depot) push(t *testing.T, e engine, repo string) (ref string, digest v1.Hash) {
	t.Helper()
	eng, err := e.Engine(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(64<<10, 2)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file.OS, file.Architecture = "linux", eng.Arch
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	ref = d.host + "/" + repo + ":v1"
	d.upload(t, img, repo, "v1")
	digest, err = img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	d.manifests.Store(0)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(e.ctx)
		_, _ = e.cli.ImageRemove(ctx, ref, client.ImageRemoveOptions{Force: true}) // not there in some tests
		_, _ = e.cli.ImageRemove(ctx, d.host+"/"+repo+"@"+digest.String(), client.ImageRemoveOptions{Force: true})
	})
	return ref, digest
}

// PrivateImage is an image in a registry that wants a password, for the tests of package docker_test.
func PrivateImage(t *testing.T) (registry, password, ref string) {
	t.Helper()
	e := setup(t)
	d := newDepot(t, e)
	d.password = "s3cret-of-the-test"
	ref, _ = d.push(t, e, "acme/private")
	return d.host, d.password, ref
}

// upload speaks the little of the registry's protocol that a push needs.
func (d *depot) upload(t *testing.T, img v1.Image, repo, tag string) {
	t.Helper()
	send := func(method, path, mediaType string, body []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.host+"/v2/"+repo+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", mediaType)
		req.SetBasicAuth("u", d.password)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		send(http.MethodPost, "/blobs/uploads/?digest=sha256:"+hexSum(body), "application/octet-stream", body)
	}
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPost, "/blobs/uploads/?digest=sha256:"+hexSum(config), "application/octet-stream", config)
	manifest, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	media, err := img.MediaType()
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPut, "/manifests/"+tag, string(media), manifest)
}

func TestPull(t *testing.T) {
	e := setup(t)
	d := newDepot(t, e)
	ref, digest := d.push(t, e, "acme/tool")
	if _, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref, Pull: container.PullNever}); !errors.Is(err, container.ErrImageNotFound) {
		t.Errorf("never: got %v, want ErrImageNotFound", err)
	}
	var heard atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			img, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref, Progress: func(string) { heard.Add(1) }})
			want := d.host + "/acme/tool@" + digest.String()
			if err != nil || img.Digest != want || !strings.HasPrefix(img.ID, "sha256:") || img.Size <= 0 {
				t.Errorf("missing: got %+v, %v, want digest %s", img, err, want)
			}
		})
	}
	wg.Wait()
	if got := d.manifests.Load(); got != 1 {
		t.Errorf("five at once asked for the manifest %d times, want once", got)
	}
	if heard.Load() == 0 {
		t.Error("nobody was told of the progress")
	}
	img, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref})
	if err != nil || img.Pulled {
		t.Errorf("second time: got %+v, %v, want not pulled", img, err)
	}
	img, err = e.Prepare(e.ctx, container.ImageRequest{Image: ref, Pull: container.PullAlways})
	if err != nil || !img.Pulled || d.manifests.Load() == 1 {
		t.Errorf("always: got %+v, %v, want another pull", img, err)
	}
	pinned, err := e.Prepare(e.ctx, container.ImageRequest{Image: d.host + "/acme/tool:ignored@" + digest.String()})
	if err != nil || pinned.ID != img.ID {
		t.Errorf("by digest: got %+v, %v, want id %s", pinned, err, img.ID)
	}
	if byID, err := e.Prepare(e.ctx, container.ImageRequest{Image: img.ID, Pull: container.PullAlways}); err != nil || byID.ID != img.ID {
		t.Errorf("by id: got %+v, %v", byID, err)
	}
	if _, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref, Platform: "linux/s390x", Pull: container.PullNever}); !errors.Is(err, container.ErrImageNotFound) {
		t.Errorf("another platform: got %v, want ErrImageNotFound", err)
	}
}

func TestPullErrors(t *testing.T) {
	e := setup(t)
	d := newDepot(t, e)
	d.password = "s3cret-of-the-test"
	ref, _ := d.push(t, e, "acme/private")
	tests := []struct {
		name  string
		auth  map[string]Auth
		image string
		want  error
		text  string
	}{
		{"no credentials", nil, ref, container.ErrImageAuth, "the worker has no credentials for " + d.host},
		{"wrong credentials", map[string]Auth{d.host: {Username: "u", Password: "wrong"}}, ref, container.ErrImageAuth, d.host},
		{"no such tag", map[string]Auth{d.host: {Username: "u", Password: d.password}}, d.host + "/acme/private:v9", container.ErrImageNotFound, "spelling"},
		{"no such registry", nil, "127.0.0.1:1/x", container.ErrImagePull, "127.0.0.1:1"},
		{"no reference", nil, "a b", container.ErrSpec, "image"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(Config{Auth: tt.auth})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			_, err = p.Prepare(e.ctx, container.ImageRequest{Image: tt.image})
			if !errors.Is(err, tt.want) || !strings.Contains(hint.Text(err), tt.text) {
				t.Errorf("got %v, want %v naming %q", err, tt.want, tt.text)
			}
			if err != nil && strings.Contains(err.Error(), d.password) {
				t.Errorf("the password stands in %v", err)
			}
		})
	}
	p, err := New(Config{Auth: map[string]Auth{d.host: {Username: "u", Password: d.password}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if img, err := p.Prepare(e.ctx, container.ImageRequest{Image: ref}); err != nil || !img.Pulled {
		t.Errorf("right credentials: got %+v, %v", img, err)
	}
}

func TestPullStalls(t *testing.T) {
	e := setup(t)
	d := newDepot(t, e)
	ref, _ := d.push(t, e, "acme/slow")
	d.hold = make(chan struct{})
	defer close(d.hold)
	p, err := New(Config{PullStall: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	begin := time.Now()
	if _, err := p.Prepare(e.ctx, container.ImageRequest{Image: ref}); !errors.Is(err, container.ErrImagePull) || !strings.Contains(err.Error(), "nothing came") {
		t.Errorf("got %v, want ErrImagePull for want of progress", err)
	}
	ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := p.Prepare(ctx, container.ImageRequest{Image: ref}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's own deadline", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestEngineDescription(t *testing.T) {
	e := setup(t)
	got, err := e.Engine(e.ctx)
	if err != nil || got.Version == "" || got.API == "" || got.OS != "linux" || got.Arch == "" || got.CPUs < 1 || got.RootDir == "" {
		t.Errorf("got %+v, %v", got, err)
	}
}
