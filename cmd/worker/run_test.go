package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/cmd/internal/cli"
	"slipway/internal/hint"
	"slipway/job"
	wsync "slipway/sync"
	"slipway/test/devprogram"
	"slipway/test/eventually"
)

func TestRun_WithoutEngine(t *testing.T) {
	b := setup(t, noEngine)
	b.stdin("image: x\nsteps: [{run: 'true'}]\n")
	_, errOut, code := b.run("run", "-")
	for _, want := range []string{"--allow-local", "DOCKER_HOST", "127.0.0.1:1"} {
		if code != 3 || !strings.Contains(errOut, want) {
			t.Errorf("code %d, stderr %q, want 3 and %q", code, errOut, want)
		}
	}
}

// TestRun_WithoutServers: a worker that was installed alone says what is missing, and how to get it.
func TestRun_WithoutServers(t *testing.T) {
	needLinux(t)
	t.Setenv("PATH", "")
	for name, c := range map[string]struct {
		args  []string
		wants []string
	}{
		"run": {[]string{"run", "--allow-local", "-"}, []string{"slipway-devserver-nats"}},
		"dev": {[]string{"dev", "--allow-local", "--data", t.TempDir()}, []string{"slipway-devserver-nats", "slipway-devserver-s3"}},
	} {
		b := setup(t, noEngine)
		b.stdin("image: x\nsteps: [{run: 'true'}]\n")
		_, errOut, code := b.run(c.args...)
		for _, want := range append(c.wants, "no program that can be started", "make build", "SLIPWAY_DEVSERVER") {
			if code != 3 || !strings.Contains(errOut, want) {
				t.Errorf("%s: code %d, stderr %q, want 3 and %q", name, code, errOut, want)
			}
		}
		if len(c.wants) == 1 && strings.Contains(errOut, devprogram.S3) {
			t.Errorf("%s: stderr %q names a program that it does not need", name, errOut)
		}
	}
}

// TestFolderKind: a job that waits in the folder of one command does not go on with the empty store of the other.
func TestFolderKind(t *testing.T) {
	needLinux(t)
	for _, c := range []struct{ store, cmd, other string }{{"s3", "run", "worker dev"}, {"objects", "dev", "worker run"}} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, c.store), 0o700); err != nil {
			t.Fatal(err)
		}
		args := []string{c.cmd, "--allow-local", "--data", dir}
		if c.cmd == "run" {
			args = append(args, "-")
		}
		b := setup(t, noEngine)
		b.stdin("image: x\nsteps: [{run: 'true'}]\n")
		if _, errOut, code := b.run(args...); code != 3 || !strings.Contains(errOut, dir+" has the store of "+c.other) || !strings.Contains(errOut, "--data") {
			t.Errorf("%s: code %d, stderr %q, want 3 and whose folder it is", c.cmd, code, errOut)
		}
	}
}

func TestServe_WithoutEngine(t *testing.T) {
	b := setup(t, noEngine, "SLIPWAY_METRICS_ADDR=127.0.0.1:0")
	if _, errOut, code := b.run(); code != 3 || !strings.Contains(errOut, "--docker-host") {
		t.Errorf("code %d, stderr %q, want 3 and the setting", code, errOut)
	}
}

// TestRun_Outcomes runs whole jobs with the development servers and local boxes.
func TestRun_Outcomes(t *testing.T) {
	needLinux(t)
	b := setup(t, noEngine, devserverAt(t, devprogram.NATS))
	for name, tc := range map[string]struct {
		spec string
		code int
		out  string
	}{
		"succeeded": {"image: x\nsteps: [{run: echo hi}]", 0, "hi\n"},
		"failed":    {"image: x\nsteps: [{run: echo no; exit 3}]", 1, "no\n"},
		"timed out": {"image: x\nsteps: [{run: sleep 30, timeout: 1s, grace: 0s}]", 124, ""},
		"invalid":   {"image: x\nsteps: []", 2, ""},
	} {
		b.stdin(tc.spec)
		if out, errOut, code := b.run("run", "--allow-local", "-"); code != tc.code || out != tc.out {
			t.Errorf("%s: code %d, stdout %q, want %d, %q\n%s", name, code, out, tc.code, tc.out, errOut)
		}
	}
}

// TestRun_Hello: what the first job says about its network is true without a box, too.
func TestRun_Hello(t *testing.T) {
	needLinux(t)
	out, errOut, code := setup(t, noEngine, devserverAt(t, devprogram.NATS)).run("run", "--allow-local", "../../examples/hello.yaml")
	if code != 0 || !strings.Contains(out, "network interfaces: ") || strings.Contains(out, "no network") {
		t.Errorf("code %d, stdout %q\n%s", code, out, errOut)
	}
}

// TestRun_NamesAreUnique: two at once on one engine must not take each other's boxes for leftovers of their own.
func TestRun_NamesAreUnique(t *testing.T) {
	needLinux(t)
	b := setup(t, noEngine, devserverAt(t, devprogram.NATS))
	seen := map[string]bool{}
	for range 2 {
		b.stdin("image: x\nsteps: [{run: 'true'}]")
		out, errOut, code := b.run("run", "--allow-local", "-o", "json", "-")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var r job.Result
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || code != 0 {
			t.Fatalf("code %d, %v\n%s%s", code, err, out, errOut)
		}
		if !strings.HasPrefix(r.Worker, "run-") || seen[r.Worker] {
			t.Errorf("worker: got %q, want run-… and another one each time", r.Worker)
		}
		seen[r.Worker] = true
	}
}

// TestRun_KeepsData: a workspace outlives the program if its folder does, and else nothing does.
func TestRun_KeepsData(t *testing.T) {
	needLinux(t)
	tmp, data := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if err := os.Chmod(filepath.Dir(tmp), 0o711); err != nil { // the steps' user passes through it
		t.Fatal(err)
	}
	b := setup(t, noEngine, devserverAt(t, devprogram.NATS))
	first := "image: x\nqueue: other\nworkspace: {prefix: keep/me}\nsteps: [{run: echo kept > file}]\n"
	second := "image: x\nworkspace: {prefix: keep/me, push: never}\nsteps: [{run: cat file}]\n"
	b.stdin(first)
	if _, errOut, code := b.run("run", "--allow-local", "--data", data, "-"); code != 0 || !strings.Contains(errOut, "+ file") {
		t.Fatalf("first: code %d\n%s", code, errOut)
	}
	b.stdin(second)
	if out, errOut, code := b.run("run", "--allow-local", "--data", data, "-"); code != 0 || out != "kept\n" {
		t.Errorf("second: code %d, stdout %q\n%s", code, out, errOut)
	}
	b.stdin(second)
	if out, _, code := b.run("run", "--allow-local", "-"); code != 1 || out != "" {
		t.Errorf("without the folder: code %d, stdout %q, want 1 and nothing", code, out)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestRun_FolderInUse(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	unlock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	b := setup(t, noEngine, devserverAt(t, devprogram.NATS))
	b.stdin("image: x\nsteps: [{run: 'true'}]\n")
	if _, errOut, code := b.run("run", "--allow-local", "--data", dir, "-"); code != 3 || !strings.Contains(errOut, "--data") {
		t.Errorf("code %d, stderr %q", code, errOut)
	}
}

func TestRun_Interrupted(t *testing.T) {
	needLinux(t)
	b := setup(t, noEngine, devserverAt(t, devprogram.NATS))
	b.stdin("image: x\nsteps:\n  - {run: echo started; sleep 60, grace: 0s}\n  - {run: echo always, if: always}\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually.True(t, 30*time.Second, "the step prints", func() bool { return strings.Contains(b.out.String(), "started") })
		b.interrupts <- struct{}{}
	}()
	out, errOut, code := b.run("run", "--allow-local", "-")
	<-done
	if code != 130 || !strings.Contains(out, "always") {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
}

// TestExplainStore: each way in which a store can be wrong names the setting to look at, and stays the error that it is.
func TestExplainStore(t *testing.T) {
	for err, want := range map[error]string{
		wsync.ErrNoBucket:    "SLIPWAY_S3_CREATE_BUCKET",
		wsync.ErrDenied:      "SLIPWAY_S3_SECRET_KEY",
		wsync.ErrUnavailable: "SLIPWAY_S3_ENDPOINT",
		wsync.ErrUnsafeStore: "If-None-Match",
	} {
		got := new(cli.S3).Explain(fmt.Errorf("test the S3 store: %w", err))
		if !errors.Is(got, err) || !strings.Contains(hint.Of(got), want) || strings.Contains(got.Error()+hint.Of(got), "\n") {
			t.Errorf("%v: got %q with hint %q, want a hint with %q, each in one line", err, got, hint.Of(got), want)
		}
	}
}
