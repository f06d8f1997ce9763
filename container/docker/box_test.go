package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/container"
	testimage "slipway/test/image"
)

// engine is what a test on a real engine needs.
type engine struct {
	*Provider
	ctx   context.Context
	image container.Image
}

func setup(t *testing.T) engine {
	t.Helper()
	testimage.Require(t, testimage.Shell)
	ctx := t.Context()
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	img, err := p.Prepare(ctx, container.ImageRequest{Image: testimage.Shell, Pull: container.PullNever})
	if err != nil {
		t.Fatal(err)
	}
	return engine{p, ctx, img}
}

// name makes names that no other run of the tests has.
func name() string { return "slipway-test-" + strings.ToLower(rand.Text()[:10]) }

func (e engine) spec() container.Spec {
	return container.Spec{Name: name(), Image: e.image.ID, Labels: map[string]string{container.LabelJob: "test"}}
}

// box starts one that the test removes at its end.
func (e engine) box(t *testing.T, spec container.Spec) container.Sandbox {
	t.Helper()
	b, err := e.Create(e.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), time.Minute)
		defer cancel()
		if err := b.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := b.Start(e.ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

// sh runs a script and returns what it printed, both streams together.
func sh(t *testing.T, b container.Sandbox, script string) (container.Exit, string) {
	t.Helper()
	var out strings.Builder
	exit, err := b.Exec(t.Context(), container.Command{
		Args: []string{"sh", "-c", script}, Timeout: 20 * time.Second,
		Output: func(_ container.Stream, p []byte) { out.Write(p) },
	})
	if err != nil {
		t.Fatalf("run %q: %v", script, err)
	}
	return exit, out.String()
}

func TestBoxIsClosed(t *testing.T) {
	e := setup(t)
	b := e.box(t, e.spec())
	tests := []struct{ name, script, want string }{
		{"user", "id -u; id -g; id -G", "1000\n1000\n1000\n"},
		{"capabilities", "grep -E 'Cap(Prm|Eff)|NoNewPrivs' /proc/self/status | tr -d '\\t'", "CapPrm:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\n"},
		{"filter", "grep -E '^Seccomp:' /proc/self/status | tr -d '\\t'", "Seccomp:2\n"},
		{"only lo", "ls /sys/class/net", "lo\n"},
		{"hosts", "grep -c localhost /etc/hosts; hostname", "2\njob\n"},
		{"read-only root", "touch /x 2>/dev/null; touch /etc/hosts 2>/dev/null; touch /.slipway/x 2>/dev/null; ls -d /x /.slipway/x 2>/dev/null", ""},
		{"workspace", "pwd; echo hi >f && cat f", "/workspace\nhi\n"},
		{"tmp", "echo 'echo ran' >/tmp/x; chmod +x /tmp/x; sh /tmp/x; df -k /tmp | awk 'END{print $2}'", "ran\n262144\n"},
		{"run", "touch /run/x 2>/dev/null || echo refused", "refused\n"},
		{"supervisor", "kill -9 1 2>/dev/null || echo refused; cat /proc/1/environ 2>/dev/null || echo hidden", "refused\nhidden\n"},
		{"masks", "cat /proc/kcore 2>/dev/null | head -c 1 | wc -c; ls /sys/firmware | wc -l", "0\n0\n"},
		{"open files", "ulimit -n; ulimit -c", "8192\n0\n"},
		{"environment", "env | sort | grep -v -E '^(PWD|SHLVL|OLDPWD)='", "CI=true\nHOME=/tmp\nHOSTNAME=job\nLANG=C.UTF-8\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"},
		{"devices", "mknod /tmp/d c 1 3 2>/dev/null || echo refused", "refused\n"},
		{"namespaces", "unshare -U true 2>/dev/null || echo refused", "refused\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := sh(t, b, tt.script); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.script, got, tt.want)
			}
		})
	}
}

// TestSystemCalls runs a program in the box that tries what must be refused.
func TestSystemCalls(t *testing.T) {
	e := setup(t)
	eng, err := e.Engine(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(t.TempDir(), "probe")
	build := exec.CommandContext(e.ctx, "go", "build", "-o", probe, ".")
	build.Dir = "testdata/probe"
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+eng.Arch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build probe: %v\n%s", err, out)
	}
	program, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	b := e.box(t, e.spec())
	if err := b.Files().Write(e.ctx, "probe", bytes.NewReader(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, got := sh(t, b, "./probe"); got != "done\n" {
		t.Errorf("got:\n%s", got)
	}
}

func TestRelaxations(t *testing.T) {
	e := setup(t)
	tests := []struct {
		relax        container.Relaxation
		script, want string
	}{
		{container.RelaxRootSteps, "id -u; touch f && chown 5:6 f && stat -c %u:%g f; mount -t tmpfs x /tmp 2>/dev/null || echo refused; grep NoNewPrivs /proc/self/status | cut -f2", "0\n5:6\nrefused\n1\n"},
		{container.RelaxRootfsWritable, "cat /proc/mounts | awk '$2==\"/\"{print substr($4,1,2)}'", "rw\n"},
		{container.RelaxSeccompDefault, "grep -E '^Seccomp:' /proc/self/status | cut -f2", "2\n"},
	}
	for _, tt := range tests {
		t.Run(string(tt.relax), func(t *testing.T) {
			spec := e.spec()
			spec.Relaxed = []container.Relaxation{tt.relax}
			b := e.box(t, spec)
			if _, got := sh(t, b, tt.script); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.script, got, tt.want)
			}
			if err := b.Files().Write(e.ctx, "from-outside", strings.NewReader("x"), 0o600); err != nil {
				t.Error(err)
			}
			if _, got := sh(t, b, "cat from-outside"); got != "x" {
				t.Errorf("the steps' own file: got %q", got)
			}
		})
	}
}

// TestWorkspaceOwner: git works only in a folder of its own user, wherever the workspace lies and whatever the image has there.
func TestWorkspaceOwner(t *testing.T) {
	e := setup(t)
	for _, disk := range []int64{0, 16 << 20} {
		for _, workdir := range []string{"", "/home/x"} {
			t.Run(fmt.Sprintf("disk %d in %q", disk, workdir), func(t *testing.T) {
				spec := e.spec()
				spec.User, spec.Workdir, spec.Resources.Disk = container.User{UID: 1234, GID: 567}, workdir, disk
				b := e.box(t, spec)
				if _, got := sh(t, b, "stat -c '%u:%g %a' ."); got != "1234:567 777\n" {
					t.Errorf("got %q, want 1234:567 777", got)
				}
			})
		}
	}
}

// TestOpenNetwork: an interface beside lo. Nothing outside is aimed at.
func TestOpenNetwork(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Network, spec.Relaxed = container.NetworkOpen, []container.Relaxation{container.RelaxNetworkOpen}
	b := e.box(t, spec)
	if _, got := sh(t, b, "ls /sys/class/net; grep -c . /etc/hosts >/dev/null && echo hosts"); got != "eth0\nlo\nhosts\n" {
		t.Errorf("got %q", got)
	}
}

// The limit of a file's size is no second limit of /tmp.
func TestLimits_TmpBeyondDisk(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Resources = container.Resources{Memory: 64 << 20, Disk: 4 << 20, Tmp: 16 << 20, Shm: 12 << 20}
	b := e.box(t, spec)
	for _, script := range []string{
		"dd if=/dev/zero of=/tmp/big bs=1M count=15 2>&1 && rm /tmp/big", "dd if=/dev/zero of=/dev/shm/big bs=1M count=11 2>&1",
	} {
		if exit, out := sh(t, b, script); !exit.Success() {
			t.Errorf("%s: got %+v, %s", script, exit, out)
		}
	}
	if exit, _ := sh(t, b, "truncate -s 64M sparse"); exit.Success() {
		t.Error("a sparse file of 64 MiB was made beside a limit of 4")
	}
}

func TestLimits(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Resources = container.Resources{Memory: 64 << 20, Disk: 16 << 20, Tmp: 8 << 20, Pids: 64}
	b := e.box(t, spec)
	t.Run("memory", func(t *testing.T) {
		exit, _ := sh(t, b, "x=0123456789abcdef; while :; do x=$x$x; done")
		if !exit.OOM || exit.Success() || exit.TimedOut {
			t.Errorf("got %+v, want killed for memory", exit)
		}
	})
	t.Run("disk", func(t *testing.T) {
		exit, _ := sh(t, b, "dd if=/dev/zero of=big bs=1M count=12 2>/dev/null")
		if !exit.Success() {
			t.Errorf("12 of 16 MiB: got %+v", exit)
		}
		err := b.Files().Write(e.ctx, "more", bytes.NewReader(make([]byte, 8<<20)), 0o644)
		if !errors.Is(err, container.ErrNoSpace) {
			t.Errorf("8 MiB more: got %v, want ErrNoSpace", err)
		}
		if exit, _ := sh(t, b, "rm big; df -k . | awk 'END{print $2}'"); !exit.Success() {
			t.Errorf("afterwards: got %+v", exit)
		}
	})
	t.Run("disk, one file", func(t *testing.T) {
		exit, _ := sh(t, b, "head -c 20m /dev/zero >big")
		if exit.Code != 1 || exit.Signal != "" {
			t.Errorf("got %+v, want an error that the program can tell", exit)
		}
		if err := b.Files().Write(e.ctx, "more", bytes.NewReader(make([]byte, 4<<10)), 0o644); !errors.Is(err, container.ErrNoSpace) {
			t.Errorf("a page more: got %v, want ErrNoSpace", err)
		}
		sh(t, b, "rm big")
	})
	t.Run("tmp", func(t *testing.T) {
		if exit, _ := sh(t, b, "dd if=/dev/zero of=/tmp/big bs=1M count=20 2>/dev/null"); exit.Success() {
			t.Error("20 MiB fit into a /tmp of 8 MiB")
		}
	})
	t.Run("pids", func(t *testing.T) {
		exit, out := sh(t, b, "i=0; while [ $i -lt 100 ]; do sleep 30 & i=$((i+1)); done; echo all")
		if strings.Contains(out, "all") && exit.Success() {
			t.Errorf("100 processes started under a limit of 64: %+v", exit)
		}
	})
}
