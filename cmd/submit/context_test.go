package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/cmd/internal/cli"
	"slipway/job"
)

// withHome gives the program a folder of settings of its own.
func (b *bundle) withHome(environ ...string) (config string) {
	config = b.t.TempDir()
	b.app.sys.Environ = append([]string{"XDG_CONFIG_HOME=" + config}, environ...)
	return config
}

// asked lets the program look for a queue, and returns with which settings it did.
func (b *bundle) asked(args ...string) cli.NATS {
	b.t.Helper()
	var got cli.NATS
	b.app.connect = func(_ context.Context, n cli.NATS) (job.Client, func(), error) {
		got = n
		return nil, nil, job.ErrUnavailable
	}
	b.app.context, b.app.nats = "", cli.NATS{}
	b.run(append(args, "list")...)
	return got
}

func (b *bundle) must(args ...string) string {
	b.t.Helper()
	out, errOut, code := b.run(args...)
	if code != 0 {
		b.t.Fatalf("%v: code %d\n%s%s", args, code, out, errOut)
	}
	return out
}

func TestContext(t *testing.T) {
	b := setup(t)
	config := b.withHome()
	if got := b.asked().URL; got != cli.DefaultNATS {
		t.Errorf("without a context: got %s, want the default", got)
	}
	b.must("context", "add", "prod", "--nats-url", "nats://me:geheim@prod:4222", "--nats-prefix", "team", "--queue", "builds")
	out := b.must("context", "add", "test", "--nats-url", "nats://test:4222")
	if strings.Contains(out, "in use") {
		t.Errorf("the second context is in use at once: %s", out)
	}
	for _, path := range []string{"slipway/context/prod.yaml", "slipway/context.txt"} {
		info, err := os.Stat(filepath.Join(config, path))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want mode 0600", path, info, err)
		}
	}
	environ := b.app.sys.Environ
	for name, tc := range map[string]struct {
		environ     []string
		args        []string
		url, prefix string
	}{
		"in use":                       {nil, nil, "nats://me:geheim@prod:4222", "team"},
		"a flag wins":                  {nil, []string{"--nats-url", "nats://flag:1"}, "nats://flag:1", "team"},
		"a variable wins":              {[]string{"SLIPWAY_NATS_URL=nats://env:1"}, nil, "nats://env:1", "team"},
		"an empty variable does not":   {[]string{"SLIPWAY_NATS_URL="}, nil, "nats://me:geheim@prod:4222", "team"},
		"another by flag":              {nil, []string{"--context", "test"}, "nats://test:4222", "slipway"},
		"another by variable":          {[]string{"SLIPWAY_CONTEXT=test"}, nil, "nats://test:4222", "slipway"},
		"the flag before the variable": {[]string{"SLIPWAY_CONTEXT=prod"}, []string{"--context", "test"}, "nats://test:4222", "slipway"},
	} {
		b.app.sys.Environ = append(environ[:len(environ):len(environ)], tc.environ...)
		if got := b.asked(tc.args...); got.URL != tc.url || got.Prefix != tc.prefix {
			t.Errorf("%s: got %s, %s, want %s, %s", name, got.URL, got.Prefix, tc.url, tc.prefix)
		}
	}
	b.app.sys.Environ = environ
	b.app.context = ""
	if out := b.must("context", "list") + b.must("context", "show"); !strings.Contains(out, "*  prod") || !strings.Contains(out, "builds") || strings.Contains(out, "geheim") {
		t.Errorf("list and show: got %s, want prod in use, its queue, and no password", out)
	}
	b.must("context", "use", "test")
	if got := b.asked().URL; got != "nats://test:4222" {
		t.Errorf("after use: got %s", got)
	}
	b.must("context", "remove", "test")
	if got := b.asked().URL; got != cli.DefaultNATS {
		t.Errorf("after the one in use was removed: got %s, want the default", got)
	}
}

func TestContext_Refused(t *testing.T) {
	b := setup(t)
	b.withHome()
	b.must("context", "add", "prod", "--nats-url", "nats://prod:4222")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such":        {[]string{"--context", "prd", "list"}, `no such context: "prd": did you mean "prod"?`},
		"use of none":    {[]string{"context", "use", "x"}, "There are prod"},
		"a path":         {[]string{"context", "use", "../prod"}, "no such context"},
		"a bad name":     {[]string{"context", "add", "a/b", "--nats-url", "nats://x"}, "want letters"},
		"there already":  {[]string{"context", "add", "prod", "--nats-url", "nats://x"}, "--replace"},
		"nothing":        {[]string{"context", "add", "x"}, "nothing to remember"},
		"a bad value":    {[]string{"context", "add", "x", "--nats-url", "http://x"}, "--nats-url: want"},
		"a bad queue":    {[]string{"context", "add", "x", "--queue", "X Y"}, "--queue: want"},
		"none of nats":   {[]string{"context", "add", "x", "--from-nats", "nope"}, "nats context list"},
		"remove of none": {[]string{"context", "remove", "x"}, "no such context"},
	} {
		b.app.context = ""
		if _, errOut, code := b.run(tc.args...); code != 2 || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d, stderr %q, want 2 and %q", name, code, errOut, tc.want)
		}
	}
}

// TestContext_EditedFile: mistakes in a file that was edited have their line.
func TestContext_EditedFile(t *testing.T) {
	b := setup(t)
	config := b.withHome()
	b.must("context", "add", "prod", "--nats-url", "nats://prod:4222")
	path := filepath.Join(config, "slipway/context/prod.yaml")
	if err := os.WriteFile(path, []byte("nats:\n  ulr: nats://x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := b.run("list"); code != 2 || !strings.Contains(errOut, path+":2:3: nats.ulr: no such setting") {
		t.Errorf("code %d, stderr %q, want 2 and file, line and key", code, errOut)
	}
	b.app.sys.Environ = nil // neither home nor a folder of settings
	if got := b.asked().URL; got != cli.DefaultNATS {
		t.Errorf("without a home: got %s, want the default", got)
	}
}

// TestContext_FromNATS: a context of the nats command is where to begin.
func TestContext_FromNATS(t *testing.T) {
	b := setup(t)
	config := b.withHome()
	dir := filepath.Join(config, "nats/context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":  `{"description": "x", "url": "nats://n1:4222, n2", "user": "me", "password": "ge:heim", "inbox_prefix": "_INBOX_me", "tls_first": true}`,
		"token":  `{"url": "n1", "token": "tok"}`,
		"domain": `{"url": "n1", "jetstream_domain": "hub"}`,
		"files":  `{"url": "n1", "creds": "/no/such"}`,
		"broken": `{"url": "geheim`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("context", "add", "a", "--from-nats", "plain", "--nats-prefix", "team")
	if got := b.asked(); got.URL != "nats://me:ge%3Aheim@n1:4222,nats://me:ge%3Aheim@n2" || got.InboxPrefix != "_INBOX_me" || !got.TLSFirst || got.Prefix != "team" {
		t.Errorf("got %+v", got)
	}
	b.must("context", "add", "b", "--from-nats", "token")
	if got := b.asked("--context", "b"); got.URL != "nats://tok@n1" {
		t.Errorf("token: got %s", got.URL)
	}
	b.app.context = ""
	for name, want := range map[string]string{"domain": "no setting for jetstream_domain", "files": "/no/such", "broken": "is no context of the nats command"} {
		if _, errOut, code := b.run("context", "add", "c", "--from-nats", name); code != 2 || !strings.Contains(errOut, want) || strings.Contains(errOut, "geheim") {
			t.Errorf("%s: code %d, stderr %q, want 2 and %q", name, code, errOut, want)
		}
	}
	if out := b.must("context", "list"); strings.Contains(out, "c ") {
		t.Errorf("a refused context is there: %s", out)
	}
}

// TestContext_Queue: a job that names no queue goes into the context's.
func TestContext_Queue(t *testing.T) {
	b := setup(t)
	b.withQueue()
	b.withHome()
	b.must("context", "add", "prod", "--queue", "builds")
	for spec, want := range map[string]string{"": "builds", "queue: mine\n": "mine"} {
		out := b.must("create", "-o", "json", b.file("image: x\nsteps: [{run: 'true'}]\n"+spec))
		if !strings.Contains(out, `"queue":"`+want+`"`) {
			t.Errorf("%q: got %s, want queue %s", spec, out, want)
		}
	}
}
