package local_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slipway/container"
	"slipway/container/containertest"
	"slipway/container/local"
	"slipway/test/selfexec"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SLIPWAY_LOCAL_WORKER"); dir != "" {
		worker(dir)
	}
	goleak.VerifyTestMain(m)
}

func setup(t *testing.T) (*local.Provider, string) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { // the steps' user has to get through
			t.Fatal(err)
		}
	}
	p, err := local.New(local.Config{AllowLocal: true, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("left in the folder of boxes: %v", list)
		}
	})
	return p, dir
}

func TestConformance(t *testing.T) {
	t.Parallel()
	containertest.Run(t, func(t *testing.T) container.Provider {
		p, _ := setup(t)
		return p
	}, containertest.Options{Image: "any", Shell: true, Users: os.Geteuid() == 0})
}

func TestRefuses(t *testing.T) {
	_, err := local.New(local.Config{})
	if !errors.Is(err, container.ErrDenied) || !strings.Contains(err.Error(), "--allow-local") {
		t.Errorf("New = %v, want ErrDenied that names --allow-local", err)
	}
}

func box(t *testing.T, p *local.Provider, spec container.Spec) container.Sandbox {
	t.Helper()
	b, err := p.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Remove(context.WithoutCancel(t.Context())) })
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t *testing.T, b container.Sandbox, script string) string {
	t.Helper()
	var out strings.Builder
	x, err := b.Exec(t.Context(), container.Command{Args: []string{"/bin/sh", "-c", script}, Output: func(_ container.Stream, p []byte) { out.Write(p) }})
	if err != nil || x.Code != 0 {
		t.Fatalf("Exec(%q) = %+v, %v: %s", script, x, err, out.String())
	}
	return out.String()
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SLIPWAY_SECRET", "hush")
	p, _ := setup(t)
	b := box(t, p, container.Spec{Name: "env", Env: map[string]string{"A": "1"}})
	env := run(t, b, "env; pwd")
	if strings.Contains(env, "hush") {
		t.Error("the worker's environment reached a command")
	}
	root := filepath.Dir(b.Info().Workdir)
	for _, want := range []string{"A=1\n", "HOME=" + root + "/tmp\n", "TMPDIR=" + root + "/tmp\n", "CI=true\n", "\n" + b.Info().Workdir + "\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in %s", want, env)
		}
	}
	run(t, b, "echo x > $TMPDIR/x; echo y > y")
}

func TestUserWithoutRoot(t *testing.T) {
	t.Parallel() // it runs all of this once more, as another user
	if os.Geteuid() == 0 {
		// The same test as another user.
		copied := filepath.Join(t.TempDir(), "test")
		for d := filepath.Dir(copied); d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		selfexec.Copy(t, copied)
		cmd := exec.Command(copied, "-test.run", "TestUserWithoutRoot|TestConformance/(exec|shell|files)|TestWorkerKilled", "-test.v")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("as user 12345: %v\n%s", err, out)
		}
		return
	}
	p, _ := setup(t)
	own := container.User{UID: os.Geteuid(), GID: os.Getegid()}
	for _, u := range []container.User{{}, container.DefaultUser, own} {
		b := box(t, p, container.Spec{Name: "user", User: u})
		run(t, b, "test $(id -u) = "+strings.TrimSpace(run(t, b, "id -u")))
		if err := b.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_, err := p.Create(t.Context(), container.Spec{Name: "image", FromImage: true})
	if !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("a workspace from the image = %v, want ErrUnsupported", err)
	}
	_, err = p.Create(t.Context(), container.Spec{Name: "other", User: container.User{UID: 4321, GID: 4321}})
	if !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("another user = %v, want ErrUnsupported", err)
	}
	b := box(t, p, container.Spec{Name: "user"})
	if _, err := b.Exec(t.Context(), container.Command{Args: []string{"true"}, User: &container.User{UID: 4321, GID: 4321}}); !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("a command as another user = %v, want ErrUnsupported", err)
	}
}

func TestCheck(t *testing.T) {
	p, _ := setup(t)
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartAfterClose(t *testing.T) {
	p, _ := setup(t)
	b, err := p.Create(t.Context(), container.Spec{Name: "late"})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	if err := b.Start(t.Context()); !errors.Is(err, container.ErrEngineUnavailable) {
		t.Errorf("Start = %v, want ErrEngineUnavailable", err)
	}
	if err := b.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// A supervisor that takes its time holds up nobody longer than his context; the box goes all the same, and Close waits
// for it.
func TestRemoveSlowly(t *testing.T) {
	p, dir := setup(t)
	b, err := p.Create(t.Context(), container.Spec{Name: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The shell's parent is the step's own reaper, whose parent is the supervisor.
	pid, err := strconv.Atoi(strings.TrimSpace(run(t, b, "awk '/^PPid/{print $2}' /proc/$PPID/status")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // for a test that failed: it stands still else
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{"by handle": b.Remove(ctx), "by name": p.Remove(ctx, "slow")} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Remove %s = %v, want the context's error", what, err)
		}
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("Remove took %v, want it to end with its context", took)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("after Close there are %v, %v; want nothing", list, err)
	}
	if err := b.Remove(t.Context()); err != nil {
		t.Errorf("Remove once it is gone = %v", err)
	}
}

// startWorker starts a worker with a box in another process. supervisor is the number of the box's process 1, so to speak.
func startWorker(t *testing.T) (cmd *exec.Cmd, dir string, supervisor int) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), "SLIPWAY_LOCAL_WORKER="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the worker said nothing")
	}
	if supervisor, err = strconv.Atoi(strings.TrimPrefix(lines.Text(), "running under ")); err != nil {
		t.Fatalf("worker said %q", lines.Text())
	}
	return cmd, dir, supervisor
}

// A worker whose supervisor is killed with it leaves a folder. The next worker finds it, by its labels, and removes it at any
// depth; a folder of a worker that lives is none of its business.
func TestRemains(t *testing.T) {
	living, dir, _ := startWorker(t)
	p, err := local.New(local.Config{AllowLocal: true, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if list, err := p.List(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("beside a worker that lives: got %+v, %v; want none", list, err)
	}
	_ = living.Process.Kill()
	_ = living.Wait()

	cmd, dir, supervisor := startWorker(t)
	if p, err = local.New(local.Config{AllowLocal: true, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := syscall.Kill(supervisor, syscall.SIGSTOP); err != nil { // it must not see the end of its worker
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	list, err := p.List(t.Context(), map[string]string{container.LabelJob: "doomed"})
	if err != nil || len(list) != 1 || list[0].Name != "doomed" || list[0].State != container.StateRemains || time.Since(list[0].CreatedAt).Abs() > time.Hour {
		t.Fatalf("got %+v, %v; want what remains of the box doomed", list, err)
	}
	deepen(t, list[0].Workdir)
	if err := p.Remove(t.Context(), "doomed"); err != nil {
		t.Error(err)
	}
	if list, err := p.List(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("after removal: got %+v, %v; want none", list, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("after removal: got %v, %v; want nothing", left, err)
	}
}

// deepen makes more nested folders in dir than this process, and what it starts, may open files afterwards.
func deepen(t *testing.T, dir string) {
	t.Helper()
	fd, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	for range 2000 {
		if err == nil {
			err = syscall.Mkdirat(fd, "d", 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		below, e := syscall.Openat(fd, "d", syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		_ = syscall.Close(fd)
		fd, err = below, e
	}
	_ = syscall.Close(fd)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := syscall.Rlimit{Cur: 500, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
}

// After kill -9 of the worker its boxes are gone, with nobody to remove them.
func TestWorkerKilled(t *testing.T) {
	cmd, dir, _ := startWorker(t)
	begin := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		list, err := os.ReadDir(dir)
		if err == nil && len(list) == 0 {
			break
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("after %v there are still %v, %v", time.Since(begin).Round(time.Second), list, err)
		}
	}
	t.Logf("gone %v after the kill", time.Since(begin))
}

func worker(dir string) {
	p, err := local.New(local.Config{AllowLocal: true, Dir: dir})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	b, err := p.Create(ctx, container.Spec{Name: "doomed", Labels: map[string]string{container.LabelJob: "doomed"}})
	if err != nil {
		panic(err)
	}
	if err := b.Start(ctx); err != nil {
		panic(err)
	}
	_, err = b.Exec(ctx, container.Command{
		Args:   []string{"/bin/sh", "-c", "setsid sleep 600 & mkdir -p a/b; echo x > a/b/c; awk '/^PPid/{print \"running under\", $2}' /proc/$PPID/status; sleep 600"},
		Output: func(_ container.Stream, out []byte) { _, _ = os.Stdout.Write(out) },
	})
	panic(err)
}
