package docker

import (
	"errors"
	"strings"
	"testing"

	"slipway/container"
)

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
