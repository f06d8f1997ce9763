package credentials

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/container/docker"
	"slipway/test/eventually"
)

const secret = "hunter2"

func coded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// withHelper puts a program docker-credential-NAME with that script into the PATH. It gets what it is asked for in $asked.
func withHelper(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\nread -r asked || test -n \"$asked\" || exit 9\ntest \"$1\" = get || exit 8\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestFile_Get(t *testing.T) {
	withHelper(t, "fake", `case "$asked" in
ghcr.io) echo '{"ServerURL":"ghcr.io","Username":"me","Secret":"`+secret+`"}' ;;
https://index.docker.io/v1/) echo '{"Username":"<token>","Secret":"`+secret+`"}' ;;
broken.io) echo "no network: $asked"; exit 1 ;;
silly.io) echo '{"Secret": "`+secret+`' ;;
flood.io) yes | head -c 200000 ;;
*) echo "credentials not found in native keychain"; exit 1 ;;
esac`)
	user, token := docker.Auth{Username: "me", Password: secret}, docker.Auth{IdentityToken: secret}
	for name, tc := range map[string]struct {
		text, registry string
		want           docker.Auth
		err            string
	}{
		"coded":                     {text: `{"auths": {"ghcr.io": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "ghcr.io", want: user},
		"plain":                     {text: `{"auths": {"ghcr.io": {"username": "me", "password": "` + secret + `"}}, "proxies": {}}`, registry: "ghcr.io", want: user},
		"with a port":               {text: `{"auths": {"localhost:5000": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "localhost:5000", want: user},
		"another port":              {text: `{"auths": {"localhost:5000": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "localhost:5001"},
		"a URL":                     {text: `{"auths": {"https://quay.io/v1/": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "quay.io", want: user},
		"Docker Hub":                {text: `{"auths": {"https://index.docker.io/v1/": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "docker.io", want: user},
		"a token":                   {text: `{"auths": {"ghcr.io": {"auth": "` + coded("me:") + `", "identitytoken": "` + secret + `"}}}`, registry: "ghcr.io", want: docker.Auth{Username: "me", IdentityToken: secret}},
		"a password with a colon":   {text: `{"auths": {"ghcr.io": {"auth": "` + coded("me:a:b") + `"}}}`, registry: "ghcr.io", want: docker.Auth{Username: "me", Password: "a:b"}},
		"of another registry":       {text: `{"auths": {"ghcr.io": {"auth": "` + coded("me:x") + `"}}}`, registry: "evil.io"},
		"not base64":                {text: `{"auths": {"ghcr.io": {"auth": "` + secret + `"}}}`, registry: "ghcr.io", err: "ghcr.io: auth: want the base64"},
		"no colon":                  {text: `{"auths": {"ghcr.io": {"auth": "` + coded(secret) + `"}}}`, registry: "ghcr.io", err: "ghcr.io: auth: want the base64"},
		"no JSON":                   {text: secret, registry: "ghcr.io", err: "not the JSON"},
		"another kind":              {text: `{"auths": {"ghcr.io": {"auth": 17}}}`, registry: "ghcr.io", err: "auth: want another kind of value than number"},
		"a helper":                  {text: `{"credHelpers": {"ghcr.io": "fake"}}`, registry: "ghcr.io", want: user},
		"a helper of another":       {text: `{"credHelpers": {"ghcr.io": "fake"}}`, registry: "quay.io"},
		"the helper of all":         {text: `{"credsStore": "fake"}`, registry: "docker.io", want: token},
		"a helper before the file":  {text: `{"credHelpers": {"ghcr.io": "fake"}, "auths": {"ghcr.io": {"auth": "` + coded("other:x") + `"}}}`, registry: "ghcr.io", want: user},
		"the file after the helper": {text: `{"credsStore": "fake", "auths": {"quay.io": {"auth": "` + coded("me:"+secret) + `"}}}`, registry: "quay.io", want: user},
		"a mark of the helper's":    {text: `{"credsStore": "fake", "auths": {"quay.io": {}}}`, registry: "quay.io"},
		"a helper that fails":       {text: `{"credsStore": "fake"}`, registry: "broken.io", err: `"no network: broken.io"`},
		"an answer cut short":       {text: `{"credsStore": "fake"}`, registry: "silly.io", err: "its answer is not"},
		"an answer without end":     {text: `{"credsStore": "fake"}`, registry: "flood.io", err: "its answer is not"},
		"no such helper":            {text: `{"credsStore": "nowhere"}`, registry: "ghcr.io", err: "docker-credential-nowhere"},
		"a helper that is a path":   {text: `{"credsStore": "../../bin/sh"}`, registry: "ghcr.io", err: "want the NAME of a program"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, f := range []File{{Path: path}, {Text: tc.text}} {
				got, err := f.Get(t.Context(), tc.registry)
				if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, %v, want %v and error %q", got, err, tc.want, tc.err)
				}
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells the secret: %v", err)
				}
			}
		})
	}
}

func TestFile_Missing(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "config.json")}
	if got, err := f.Get(t.Context(), "ghcr.io"); err != nil || got != (docker.Auth{}) {
		t.Errorf("no file: got %v, %v, want nothing", got, err)
	}
	f.Path = t.TempDir()
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), f.Path) {
		t.Errorf("a folder: got %v, want an error that names it", err)
	}
}

// TestFile_Renewed: a docker login counts from the next pull on.
func TestFile_Renewed(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "config.json")}
	for _, password := range []string{"old", "new"} {
		if err := os.WriteFile(f.Path, []byte(`{"auths": {"ghcr.io": {"auth": "`+coded("me:"+password)+`"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Get(t.Context(), "ghcr.io"); err != nil || got.Password != password {
			t.Errorf("got %v, %v, want password %s", got, err, password)
		}
	}
}

// TestHelper_Ended: a helper that hangs, and whose child holds its output, is ended with the pull.
func TestHelper_Ended(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	withHelper(t, "slow", "mkfifo "+started+".fifo; : >"+started+"; read x <"+started+".fifo")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the job was canceled")
	done := make(chan error, 1)
	go func() {
		_, err := File{Text: `{"credsStore": "slow"}`}.Get(ctx, "ghcr.io")
		done <- err
	}()
	eventually.True(t, 20*time.Second, "the helper runs", func() bool { _, err := os.Stat(started); return err == nil })
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"auths": {"ghcr.io": {"auth": "bWU6eA=="}}, "credHelpers": {"a": "b"}, "credsStore": "c"}`)
	f.Add(`{"auths": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse([]byte(text))
		if err != nil {
			return
		}
		for server, e := range c.Auths {
			_ = host(server)
			_, _ = e.decode()
		}
		if name, _ := c.helper("ghcr.io"); strings.ContainsAny(name, "/\\ ") {
			t.Errorf("a helper that is no name: %q", name)
		}
	})
}
