package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/jsonstream"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"slipway/container"
	"slipway/internal/hint"
)

// What an engine says of a pull is mostly a text. The advice has to fit it: credentials mend no name lookup.
func TestPullError(t *testing.T) {
	const private, reach, trust = "give the worker credentials for r.io", "can't reach the registry r.io", "does not trust the registry r.io"
	const give, check = "the worker has no credentials for r.io: give it some", "check the worker's credentials for r.io"
	all := []string{private, reach, trust, give, check}
	s390 := &ocispec.Platform{OS: "linux", Architecture: "s390x"}
	tests := []struct {
		name     string
		err      error
		auth     bool
		platform *ocispec.Platform
		want     error
		advice   string
	}{
		{"no such name", errors.New(`Get "https://r.io/v2/": dial tcp: lookup r.io on 10.0.0.53:53: no such host`), false, nil, container.ErrImagePull, reach},
		{"refused", errors.New(`Get "https://r.io/v2/": dial tcp 10.0.0.1:443: connect: connection refused`), false, nil, container.ErrImagePull, reach},
		{"timeout", errors.New(`Get "https://r.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)`), true, nil, container.ErrImagePull, reach},
		{"certificate", errors.New(`Get "https://r.io/v2/": x509: certificate signed by unknown authority`), false, nil, container.ErrImagePull, trust},
		{"plain http", errors.New(`Get "https://r.io/v2/": http: server gave HTTP response to HTTPS client`), false, nil, container.ErrImagePull, trust},
		{"no credentials", errors.New("Head https://r.io/v2/x/manifests/1: no basic auth credentials"), false, nil, container.ErrImageAuth, give},
		{"credentials are there", errors.New("Head https://r.io/v2/x/manifests/1: no basic auth credentials"), true, nil, container.ErrImageAuth, check},
		{"unauthorized", errors.New("unauthorized: authentication required"), false, nil, container.ErrImageAuth, give},
		{"something else", errors.New("toomanyrequests: slow down"), false, nil, container.ErrImagePull, ""},
		{"not found", &jsonstream.Error{Code: 404, Message: "manifest unknown"}, false, nil, container.ErrImageNotFound, private},
		{"refused credentials", &jsonstream.Error{Code: 401, Message: "unauthorized"}, true, nil, container.ErrImageAuth, check},
		{"no such platform", errors.New("no matching manifest for linux/s390x in the manifest list entries"), false, s390, container.ErrImageNotFound, ""},
		{"platform and name", errors.New("dial tcp: lookup r.io: no such host"), false, s390, container.ErrImagePull, reach},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, what := &puller{}, pulled{name: "r.io/x:1", platform: tt.platform}
			if tt.auth {
				what.auth = "x"
			}
			err := p.pullError(t.Context(), what, tt.err)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			for _, advice := range all {
				if got, want := strings.Contains(hint.Text(err), advice), advice == tt.advice; got != want {
					t.Errorf("got %q, want %q in it: %t", err, advice, want)
				}
			}
			if tt.platform != nil && !strings.HasPrefix(err.Error(), "pull image r.io/x:1 for linux/s390x: ") {
				t.Errorf("got %q, want it to name the platform", err)
			}
		})
	}
}

func TestPull_OtherPlatform(t *testing.T) {
	e := setup(t)
	d := newDepot(t, e)
	ref, _ := d.push(t, e, "acme/narrow")
	ask := func(pull container.PullPolicy, has string) {
		t.Helper()
		_, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref, Platform: "linux/s390x", Pull: pull})
		if err == nil || !strings.Contains(err.Error(), "linux/s390x") || !strings.Contains(err.Error(), has) {
			t.Errorf("pull %s: got %v, want it to name linux/s390x, and %q", pull, err, has)
		}
		if !errors.Is(err, container.ErrImageNotFound) {
			t.Errorf("pull %s: got %v, want ErrImageNotFound", pull, err)
		}
	}
	ask(container.PullMissing, "")
	if _, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref}); err != nil {
		t.Fatal(err)
	}
	ask(container.PullMissing, "the engine has it for linux/")
	ask(container.PullNever, "the engine has it for linux/")
	d.password = "now there is one"
	_, err := e.Prepare(e.ctx, container.ImageRequest{Image: ref, Platform: "linux/s390x"})
	if err == nil || !strings.Contains(err.Error(), "; the engine has it for linux/") {
		t.Errorf("a pull that fails: got %v, want it to say what the engine has", err)
	}
}
