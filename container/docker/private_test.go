package docker_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/container"
	"slipway/container/docker"
	"slipway/container/docker/credentials"
	"slipway/internal/hint"
)

// TestPull_Private pulls from a registry that wants a password, which the docker command's config.json or a helper program has.
func TestPull_Private(t *testing.T) {
	registry, password, ref := docker.PrivateImage(t)
	bin := t.TempDir()
	helper := fmt.Sprintf("#!/bin/sh\nread -r asked\necho '{\"Username\": \"u\", \"Secret\": \"%s\"}'\necho \"$1 $asked\" >>%s/asked\n", password, bin)
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-fake"), []byte(helper), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	auths := func(password string) string {
		return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registry, base64.StdEncoding.EncodeToString([]byte("u:"+password)))
	}
	for _, tc := range []struct {
		name, config string
		want         error
		advice       string
	}{
		{"nothing", `{}`, container.ErrImageAuth, "has no credentials for " + registry},
		{"a wrong password", auths("wrong"), container.ErrImageAuth, "check the worker's credentials for " + registry},
		{"no such helper", `{"credsStore": "nowhere"}`, container.ErrImagePull, "install docker-credential-nowhere"},
		{"a password", auths(password), nil, ""},
		{"a helper", fmt.Sprintf(`{"credHelpers": {%q: "fake"}}`, registry), nil, ""},
	} {
		p, err := docker.New(docker.Config{Credentials: credentials.File{Text: tc.config}.Get})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Prepare(t.Context(), container.ImageRequest{Image: ref, Pull: container.PullAlways})
		if !errors.Is(err, tc.want) || !strings.Contains(hint.Of(err), tc.advice) {
			t.Errorf("%s: got %v (%s), want %v and %q", tc.name, err, hint.Of(err), tc.want, tc.advice)
		}
		if err != nil && strings.Contains(hint.Text(err), password) {
			t.Errorf("%s: the error tells the password: %v", tc.name, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(bin, "asked")); err != nil || string(got) != "get "+registry+"\n" {
		t.Errorf("the helper was asked %q, %v, want get %s, once", got, err, registry)
	}
}
