package leftovers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/test/eventually"
	testimage "slipway/test/image"
	"slipway/test/requires"
)

// engine is a private one.
type engine struct {
	dir, host string
	args      []string
	cmd       *exec.Cmd
	log       *eventually.Buffer
}

// private starts an engine that has the tests' image. It ends with the test.
func private(t *testing.T, args ...string) *engine {
	t.Helper()
	testimage.Require(t, testimage.Shell)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start an engine of its own")
	}
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Skip("needs dockerd, to start an engine of its own: " + err.Error())
	}
	dir, err := os.MkdirTemp("", "slw") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unmount(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the private engine's folder: %v", err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &engine{dir: dir, host: "unix://" + filepath.Join(dir, "sock"), log: &eventually.Buffer{}}
	e.args = append([]string{
		"--net", "--", "dockerd", "--config-file", filepath.Join(dir, "config.json"), "--data-root", filepath.Join(dir, "data"),
		"--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"), "--host", e.host,
		"--bridge", "none", "--iptables=false", "--storage-driver", "overlay2",
	}, args...)
	e.start(t)
	t.Cleanup(func() {
		if t.Failed() {
			e.show(t, "ps", "--all", "--no-trunc", "--format", "container {{.ID}} {{.Names}}: {{.Status}}, {{.Mounts}}")
			for _, id := range lines(t, e.host, "ps", "--all", "--quiet", "--no-trunc", "--filter", "status=dead") {
				e.show(t, "inspect", "--format", "{{.State.Status}} {{.State.Dead}} {{.State.RemovalInProgress}}", id)
				e.show(t, "rm", "-f", id)
			}
			e.show(t, "volume", "ls", "--format", "volume {{.Name}}: {{.Labels}}")
			e.show(t, "volume", "ls", "--filter", "dangling=true", "--format", "dangling {{.Name}}")
		}
		e.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Logf("log of the engine:\n%s", tail(e.log.String()))
		}
	})
	save := exec.CommandContext(t.Context(), "docker", "save", testimage.Shell)
	load := exec.CommandContext(t.Context(), "docker", "--host", e.host, "load")
	if load.Stdin, err = save.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load %s: %v\n%s", testimage.Shell, err, out)
	}
	if err := save.Wait(); err != nil {
		t.Fatal(err)
	}
	return e
}

// show logs what the engine answers.
func (e *engine) show(t *testing.T, args ...string) {
	t.Helper()
	out, err := command(context.WithoutCancel(t.Context()), e.host, args...).CombinedOutput()
	t.Logf("docker %s: %v\n%s", args[0], err, out)
}

// start starts the engine, for the first time or again, and waits until it answers.
func (e *engine) start(t *testing.T) {
	t.Helper()
	// The containerd of an engine that was killed is dead, too. Where process 1 reaps nothing it seems to run, and is waited for.
	_ = os.Remove(filepath.Join(e.dir, "exec/containerd/containerd.pid"))
	e.cmd = exec.Command("unshare", e.args...) // which becomes dockerd
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, 2*time.Minute, "the engine answers", func() bool {
		return exec.CommandContext(t.Context(), "docker", "--host", e.host, "version").Run() == nil
	})
}

// end sends the engine a signal, and waits for its end.
func (e *engine) end(t *testing.T, how os.Signal) {
	t.Helper()
	_ = e.cmd.Process.Signal(how) // it may have ended
	ended := make(chan struct{})
	go func() { _ = e.cmd.Wait(); close(ended) }() // the signal is no error
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = e.cmd.Process.Kill()
		<-ended
		t.Errorf("the engine did not end by %v within a minute", how)
	}
}

// TestEngineKilled: an engine that ends under two boxes, in whatever way, loses them, and forgets their volumes. When it is back
// nothing of them is left soon: by their own worker, or, if that was killed too, by the next one.
func TestEngineKilled(t *testing.T) {
	tests := []struct {
		name   string
		how    os.Signal
		args   []string
		worker bool // is killed as well
		long   bool
	}{
		{"kill", syscall.SIGKILL, nil, false, false},
		{"TERM", syscall.SIGTERM, nil, false, true},
		{"live-restore", syscall.SIGKILL, []string{"--live-restore"}, false, true},
		{"kill, and its worker", syscall.SIGKILL, nil, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				requires.Long(t)
			}
			e := private(t, tt.args...)
			name := unique("engine")
			w := begin(t, name, e.host, 2, "mkdir -p a/b; echo x > a/b/f; sleep 600")
			var boxes, volumes []string
			eventually.True(t, time.Minute, "two boxes run", func() bool {
				boxes, volumes = things(t, e.host, name)
				return len(boxes) == 2 && len(volumes) == 2 && strings.Count(w.log.String(), "running") == 2
			})
			e.end(t, tt.how)
			if tt.worker {
				w.kill()
			}
			e.start(t)
			began := time.Now()
			_, still := things(t, e.host, name)
			if tt.worker {
				begin(t, name, e.host, 0, "")
			}
			kept := func(all, of []string) (n int) {
				for _, x := range of {
					if slices.Contains(all, x) {
						n++
					}
				}
				return n
			}
			eventually.True(t, 3*time.Minute, "the two boxes and their volumes are gone", func() bool {
				b, v := things(t, e.host, name)
				return kept(b, boxes)+kept(v, volumes) == 0
			})
			t.Logf("volumes that the engine still had when it was back: %d of 2; all gone %v later; leftovers counted: %d",
				kept(still, volumes), time.Since(began).Round(time.Millisecond), strings.Count(w.log.String(), "\nleftover"))
			w.kill()
			begin(t, name, e.host, 0, "")
			nothingLeft(t, e.host, name) // of the second attempts, too
		})
	}
}

// unmount takes away what an engine that was killed left mounted below dir, the last first.
func unmount(t *testing.T, dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH) // the removal of the folder tells
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-4000):] }
