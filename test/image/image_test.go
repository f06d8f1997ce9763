package testimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// start runs a container of the image in the background, publishing port on
// loopback, and returns its address. It is removed at the end.
func start(t *testing.T, ref, port string, args ...string) (id, addr string) {
	t.Helper()
	argv := append([]string{"run", "--detach", "--publish", "127.0.0.1::" + port}, args...)
	id, err := docker(t.Context(), nil, argv...)
	if err != nil {
		t.Fatalf("start %s: %v", ref, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if t.Failed() {
			logs, _ := exec.CommandContext(ctx, "docker", "logs", id).CombinedOutput()
			t.Logf("logs of %s:\n%s", ref, logs)
		}
		if _, err := docker(ctx, nil, "rm", "--force", "--volumes", id); err != nil {
			t.Errorf("remove %s: %v", ref, err)
		}
	})
	addr, err = docker(t.Context(), nil, "port", id, port)
	if err != nil {
		t.Fatalf("port of %s: %v", ref, err)
	}
	return id, strings.SplitN(addr, "\n", 2)[0]
}

// await calls try until it succeeds, for at most 30 s.
func await(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("no answer within 30s: %v", err)
		case <-tick.C:
		}
	}
}

func TestNATSRuns(t *testing.T) {
	Require(t, NATS)
	_, addr := start(t, NATS, "4222", NATS, "-js", "-sd", "/data", "-m", "8222")
	var hello []byte
	await(t, func() error {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		hello = make([]byte, 4096)
		n, err := conn.Read(hello)
		hello = hello[:n]
		return err
	})
	want := `"version":"` + strings.TrimPrefix(NATS, "nats:") + `"`
	if !bytes.HasPrefix(hello, []byte("INFO ")) || !bytes.Contains(hello, []byte(want)) || !bytes.Contains(hello, []byte(`"jetstream":true`)) {
		t.Errorf("hello = %s, want INFO with %s and JetStream", hello, want)
	}
}

func TestGatewayRuns(t *testing.T) {
	Require(t, Gateway)
	_, addr := start(t, Gateway, "7070", "--env", "ROOT_ACCESS_KEY=test", "--env", "ROOT_SECRET_KEY=test-only-key",
		"--tmpfs", "/data", Gateway, "--port", ":7070", "posix", "/data")
	var body []byte
	var code int
	await(t, func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		code = res.StatusCode
		body, err = io.ReadAll(res.Body)
		return err
	})
	if code != http.StatusForbidden || !bytes.Contains(body, []byte("<Code>AccessDenied</Code>")) {
		t.Errorf("an unsigned list of buckets = %d %s, want 403 AccessDenied in S3's words", code, body)
	}
}

func TestPrometheusRuns(t *testing.T) {
	Require(t, Prometheus)
	_, addr := start(t, Prometheus, "9090", Prometheus)
	await(t, func() error {
		res, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return &net.AddrError{Err: res.Status, Addr: addr}
		}
		return nil
	})
}

func TestWorkerRuns(t *testing.T) {
	Require(t, Worker)
	out, err := docker(t.Context(), nil, "run", "--rm", "--network", "none", "--read-only", "--user", "1000:1000", Worker, "--help")
	if err != nil || !strings.Contains(out, "serve") {
		t.Errorf("worker --help: %v\n%s\nwant it to name serve", err, out)
	}
}

// box runs a command as the user of a step, on a read-only root, without a network.
func box(t *testing.T, ref string, argv ...string) string {
	t.Helper()
	args := []string{
		"run", "--rm", "--network", "none", "--read-only", "--user", "1000:1000", "--cap-drop", "ALL",
		"--tmpfs", "/tmp:exec,mode=1777", "--workdir", "/tmp",
		"--env", "HOME=/tmp", "--env", "GOCACHE=/tmp/gocache", ref,
	}
	out, err := docker(t.Context(), nil, append(args, argv...)...)
	if err != nil {
		t.Fatalf("%s: %v", argv, err)
	}
	return out
}

func TestShellRuns(t *testing.T) {
	Require(t, Shell)
	if got := box(t, Shell, "sh", "-c", "id -u; echo a b | awk '{print $2}'; /usr/bin/env true && echo ok"); got != "1000\nb\nok" {
		t.Errorf("output = %q, want 1000, b, ok", got)
	}
}

func TestGolangRuns(t *testing.T) {
	for _, ref := range []string{Golang, TestGolang} {
		Require(t, ref)
	}
	out := box(t, Golang, "sh", "-ec", `
		go version; git --version; mkdir m; cd m
		git init -q . && git config user.email a@b && git config user.name a
		printf 'module m\n' >go.mod
		printf 'package main\nfunc main() { println("it runs") }\n' >main.go
		git add . && git commit -qm first && git log --format=%s
		go run . 2>&1`) // no imports: quick to build without a cache
	for _, want := range []string{`go version go1\.26`, `git version `, `(?m)^first$`, `(?m)^it runs$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("output lacks %s:\n%s", want, out)
		}
	}
}

func TestSecondTimeDoesNothing(t *testing.T) {
	Require(t, Shell)
	before := time.Now()
	did, err := Provide(t.Context(), "busybox")
	if err != nil || !strings.HasPrefix(did, "was there") {
		t.Errorf("Provide = %q, %v, want that it was there", did, err)
	}
	t.Logf("took %v", time.Since(before))
}

func TestProvideRefuses(t *testing.T) {
	if err := Ensure(t.Context(), "redis"); err == nil || !strings.Contains(err.Error(), "busybox:1.36") {
		t.Errorf("Ensure(redis) = %v, want an error that lists the images", err)
	}
	t.Setenv("SLIPWAY_IMAGES", "steal")
	if err := Ensure(t.Context(), NATS); err == nil || !strings.Contains(err.Error(), "auto, pull or build") {
		t.Errorf("Ensure = %v, want an error that names the modes", err)
	}
}

// TestTagsMatch: what tools/go.mod has is what the tags promise and the development servers are, and compose and the
// end-to-end tests name images that can be provided.
func TestTagsMatch(t *testing.T) {
	for module, tag := range map[string]string{
		natsModule:    "v" + strings.TrimPrefix(NATS, "nats:"),
		gatewayModule: strings.TrimPrefix(Gateway, "versity/versitygw:"),
	} {
		version, _, err := goModule(t.Context(), module, "amd64")
		if err != nil || version != tag {
			t.Errorf("tools/go.mod has %s %s (%v), the image's tag says %s", module, version, err, tag)
		}
	}
	for file, module := range map[string]string{"../../go.mod": natsModule, "../../cmd/slipway-devserver-s3/go.mod": gatewayModule} {
		version, _, err := goModule(t.Context(), module, "amd64")
		text, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || !strings.Contains(string(text), module+" "+version+"\n") {
			t.Errorf("%s does not require %s %s, which tools/go.mod has (%v, %v): the tests would try two servers", file, module, version, err, readErr)
		}
	}
	compose, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\s+image: (\S+)$`).FindAllStringSubmatch(string(compose), -1)
	if len(named) < 4 {
		t.Errorf("compose names %d images, want at least 4", len(named))
	}
	for _, m := range named {
		if _, err := find(m[1]); err != nil {
			t.Errorf("docker-compose.yml: %v", err)
		}
	}
}

func TestLayersAreDeterministic(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("program", filepath.Join(dir, "link")); err != nil {
		t.Skip("no symlinks here")
	}
	layer := func() [32]byte {
		tr := newTree()
		tr.base()
		if err := tr.hostDir("opt/x", dir); err != nil {
			t.Fatal(err)
		}
		r, err := tr.open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(data)
	}
	first := layer()
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	if layer() != first {
		t.Error("the same files made two different layers")
	}
}

func TestTreePutsFoldersFirst(t *testing.T) {
	tr := newTree()
	tr.text("/a/b/c.txt", "x")
	tr.symlink("a/d", "/a/b")
	var got []string
	for _, e := range tr.sorted() {
		got = append(got, e.path)
	}
	if want := []string{"a", "a/b", "a/b/c.txt", "a/d"}; !slices.Equal(got, want) {
		t.Errorf("entries = %q, want %q", got, want)
	}
}

func TestKeyCoversTheConfig(t *testing.T) {
	a := recipe{inputs: []string{"x"}}
	b := recipe{inputs: []string{"x"}}
	b.config.Volumes = map[string]struct{}{"/v": {}}
	if a.digest() == b.digest() {
		t.Error("two configs, one key")
	}
}

func TestLibraries(t *testing.T) {
	got := libraries("/usr/bin/git:\n\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n" +
		"\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n/usr/bin/static:\n\tstatically linked\n")
	if want := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}; !slices.Equal(got, want) {
		t.Errorf("libraries = %q, want %q", got, want)
	}
}
