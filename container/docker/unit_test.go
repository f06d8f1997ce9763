package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"

	"slipway/container"
	"slipway/internal/hint"
)

func frame(kind byte, s string) []byte {
	h := [8]byte{kind}
	binary.BigEndian.PutUint32(h[4:], uint32(len(s)))
	return append(h[:], s...)
}

func TestDemux(t *testing.T) {
	whole := bytes.Join([][]byte{frame(1, "he"), frame(2, "oops"), frame(1, ""), frame(1, "llo"), frame(3, "!")}, nil)
	tests := []struct {
		name string
		in   []byte
		out  string
		err  error
	}{
		{"whole", whole, "hello", nil},
		{"nothing", nil, "", nil},
		{"cut in a header", whole[:5], "", io.ErrUnexpectedEOF},
		{"cut in stdout", whole[:9], "h", io.ErrUnexpectedEOF},
		{"cut in stderr", whole[:20], "he", io.ErrUnexpectedEOF},
		{"no header", []byte("GET / HTTP/1.1\r\n"), "", errBadHeader},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(tt.in), "byte by byte": iotest.OneByteReader(bytes.NewReader(tt.in))} {
			d := &demux{r: r}
			got, err := io.ReadAll(d)
			if string(got) != tt.out || !errors.Is(err, tt.err) {
				t.Errorf("%s, %s: got %q, %v, want %q, %v", tt.name, name, got, err, tt.out, tt.err)
			}
			if tt.name == "whole" && d.stderrHead() != "oops!" {
				t.Errorf("stderr: got %q", d.stderrHead())
			}
		}
	}
}

func TestDemuxBoundsStderr(t *testing.T) {
	in := bytes.Join([][]byte{frame(2, strings.Repeat("x", 1<<20)), frame(1, "ok")}, nil)
	d := &demux{r: bytes.NewReader(in)}
	got, err := io.ReadAll(d)
	if string(got) != "ok" || err != nil || len(d.stderrHead()) != stderrKept {
		t.Errorf("got %q, %v and %d bytes of stderr, want ok and %d", got, err, len(d.stderrHead()), stderrKept)
	}
}

// FuzzDemux: on every stream that the engine's own library reads, the same stdout.
func FuzzDemux(f *testing.F) {
	f.Add(append(frame(1, "a"), frame(2, "b")...), uint8(3))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 1, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, chunk uint8) {
		for rest := in; len(rest) >= 8; {
			size := int(binary.BigEndian.Uint32(rest[4:]))
			if size > len(rest)-8 {
				return // the library makes room for all of the piece, up to 4 GiB
			}
			rest = rest[8+size:]
		}
		got, err := io.ReadAll(iotest.DataErrReader(&demux{r: &chunks{in, int(chunk%16) + 1}}))
		var want bytes.Buffer
		if _, wantErr := stdcopy.StdCopy(&want, io.Discard, bytes.NewReader(in)); wantErr != nil {
			return
		}
		// The library ignores a cut piece, and kind 0, which no engine sends; the demux must not.
		if err == nil && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got %q, want %q", got, want.Bytes())
		}
	})
}

type chunks struct {
	b []byte
	n int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.b)
	c.b = c.b[n:]
	return n, nil
}

func TestCanonicalImage(t *testing.T) {
	hex := strings.Repeat("ab", 32)
	tests := []struct{ in, name, repo string }{
		{"alpine", "docker.io/library/alpine:latest", "docker.io/library/alpine"},
		{"cafe", "docker.io/library/cafe:latest", "docker.io/library/cafe"},
		{"acme/x:1", "docker.io/acme/x:1", "docker.io/acme/x"},
		{"localhost:5000/x", "localhost:5000/x:latest", "localhost:5000/x"},
		{"x:1@sha256:" + hex, "docker.io/library/x@sha256:" + hex, "docker.io/library/x"},
		{"sha256:" + hex, "sha256:" + hex, ""},
	}
	for _, tt := range tests {
		name, repo, err := canonicalImage(tt.in)
		if name != tt.name || repo != tt.repo || err != nil {
			t.Errorf("%s: got %s, %s, %v, want %s, %s", tt.in, name, repo, err, tt.name, tt.repo)
		}
		if norm, ok := container.NormalizeImage(tt.in); repo != "" && (!ok || !strings.HasPrefix(norm, repo)) {
			t.Errorf("%s: the policy sees %q, the engine is asked for %s", tt.in, norm, name)
		}
	}
	for _, in := range []string{"", "UPPER", "a b", "../x", hex, "x@sha256:1"} {
		if _, _, err := canonicalImage(in); !errors.Is(err, container.ErrSpec) {
			t.Errorf("%q: got %v, want ErrSpec", in, err)
		}
	}
}

// FuzzPolicySeesTheSameImage: what the policy allows must be what the engine is
// asked for, or nothing.
func FuzzPolicySeesTheSameImage(f *testing.F) {
	for _, s := range []string{"alpine", "index.docker.io/x", "a.b/c:d@sha256:" + strings.Repeat("0", 64), "localhost/x", "LOCAL/x", "a:5/b__c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		norm, ok := container.NormalizeImage(ref)
		name, repo, err := canonicalImage(ref)
		if !ok || err != nil {
			return
		}
		if got, _, _ := strings.Cut(norm, "@"); repo == "" || !strings.HasPrefix(norm, repo) || strings.ContainsAny(strings.TrimPrefix(got, repo), "/") {
			t.Fatalf("%q: the policy sees %q, the engine is asked for %q", ref, norm, name)
		}
	})
}

func TestPickDigest(t *testing.T) {
	a, b := "docker.io/library/a@sha256:"+strings.Repeat("1", 64), "localhost:5000/b@sha256:"+strings.Repeat("2", 64)
	tests := []struct {
		repo    string
		digests []string
		want    string
	}{
		{"localhost:5000/b", []string{a, b}, b},
		{"docker.io/library/a", []string{"a@sha256:" + strings.Repeat("1", 64)}, a},
		{"ghcr.io/other", []string{a, b}, a},
		{"docker.io/library/a", nil, "sha256:id"},
	}
	for _, tt := range tests {
		if got := pickDigest("sha256:id", tt.repo, tt.digests); got != tt.want {
			t.Errorf("%s of %v: got %s, want %s", tt.repo, tt.digests, got, tt.want)
		}
	}
}

func TestImageArchive(t *testing.T) {
	one, err := imageArchive("slipway-supervisor:x", "arm64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	two, _ := imageArchive("slipway-supervisor:x", "arm64", []byte("program"))
	if !bytes.Equal(one, two) {
		t.Error("the same input gives two archives")
	}
	files := untar(t, one)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest: %s: %v", files["manifest.json"], err)
	}
	m := manifest[0]
	if !bytes.Contains(files[m.Config], []byte(hexSum(files[m.Layers[0]]))) || !bytes.Contains(files[m.Config], []byte(`"arm64"`)) {
		t.Errorf("config %s does not name its layer and architecture", files[m.Config])
	}
	layer := untar(t, files[m.Layers[0]])
	if string(layer[".slipway/box"]) != "program" || string(layer[".slipway/hosts"]) != hostsFile {
		t.Errorf("layer: got %v", layer)
	}
}

func untar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFlightsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleFlight[string, int]
		var runs atomic.Int32
		var said sync.Map
		work := func(ctx context.Context, say func(string)) (int, error) {
			runs.Add(1)
			select {
			case <-time.After(time.Minute):
				say("half")
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.do(impatient, "k", nil, work); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient: got %v", err)
			}
		})
		synctest.Wait() // the impatient one is the first
		for i := range 5 {
			wg.Go(func() {
				got, err := g.do(t.Context(), "k", func(string) { said.Store(i, true) }, work)
				if got != 7 || err != nil {
					t.Errorf("got %d, %v, want 7: the work must survive its first caller", got, err)
				}
			})
		}
		wg.Wait()
		if got := runs.Load(); got != 1 {
			t.Errorf("ran %d times, want once", got)
		}
		for i := range 5 {
			if _, ok := said.Load(i); !ok {
				t.Errorf("caller %d was told nothing", i)
			}
		}
		alone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.do(alone, "k", nil, work); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("alone: got %v", err)
		}
		g.wait() // nobody waits, so that the work was canceled
		if got := runs.Load(); got != 2 {
			t.Errorf("ran %d times, want twice", got)
		}
	})
}

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
