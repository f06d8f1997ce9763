package supervisor_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

// busy starts a command that hides processes, and returns its mark and its end.
func (r *rig) busy(t *testing.T) (string, <-chan error) {
	m := mark(t)
	done := make(chan error, 1)
	go func() {
		_, _, err := r.try(context.Background(), "setsid sleep 600 & trap '' TERM; echo x > file; sleep 600; sleep 600", withMark(m))
		done <- err
	}()
	eventually.True(t, eventually.Patience, "the command runs", func() bool { return marked(m) >= 3 })
	return m, done
}

// ended checks that nothing of the box is left.
func (r *rig) ended(t *testing.T, m string, code int) {
	t.Helper()
	if got := r.wait(); got != code {
		t.Errorf("exit code of the supervisor = %d, want %d; it said: %s", got, code, r.stderr)
	}
	if n := marked(m); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := os.Stat(r.root); !os.IsNotExist(err) {
		t.Errorf("workspace is left: %v", err)
	}
}

func TestStop(t *testing.T) {
	r := setup(t)
	m, done := r.busy(t)
	if err := r.Stop(t.Context(), 200*time.Millisecond); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	r.ended(t, m, 0)
	if err := <-done; err != nil && !errors.Is(err, container.ErrStopped) { // the exit may come before the end
		t.Errorf("Exec = %v, want ErrStopped", err)
	}
	<-r.Done()
	if err := r.Err(); !errors.Is(err, container.ErrStopped) {
		t.Errorf("Err = %v, want ErrStopped", err)
	}
	if _, err := r.Exec(t.Context(), sh("true")); !errors.Is(err, container.ErrStopped) {
		t.Errorf("Exec afterwards = %v, want ErrStopped", err)
	}
	if _, err := r.Files().Stat(t.Context(), "."); !errors.Is(err, container.ErrStopped) {
		t.Errorf("Stat afterwards = %v, want ErrStopped", err)
	}
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Errorf("second Stop = %v", err)
	}
}

func TestClose(t *testing.T) {
	r := setup(t)
	m, done := r.busy(t)
	_ = r.Close()
	r.ended(t, m, 70)
	if err := <-done; !errors.Is(err, container.ErrStopped) {
		t.Errorf("Exec = %v, want ErrStopped", err)
	}
}

func TestBoxDies(t *testing.T) {
	r := setup(t)
	m, done := r.busy(t)
	_ = r.cmd.Process.Kill()
	if err := <-done; !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("Exec = %v, want ErrBoxLost", err)
	}
	if err := r.Err(); !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("Err = %v, want ErrBoxLost", err)
	}
	eventually.True(t, eventually.Patience, "its step process kills the tree", func() bool { return marked(m) == 0 })
	_ = os.RemoveAll(r.root) // nobody can do that after a SIGKILL
}

func TestSignal(t *testing.T) {
	r := setup(t)
	m, done := r.busy(t)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-done; !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("Exec = %v, want ErrBoxLost", err)
	}
	r.ended(t, m, 0)
}

// A box ends when its lifetime is over, whatever runs in it.
func TestLifetime(t *testing.T) {
	t.Parallel()
	eventually.Doubling(t, "the command runs", func(limit time.Duration) bool {
		r := setup(t, func(c *supervisor.Config) { c.Lifetime = 2 * limit; c.DeadMan = limit + limit/2 })
		m := mark(t)
		_, out, err := r.try(t.Context(), "setsid sleep 600 & trap '' TERM; echo x > file; echo started; sleep 600; sleep 600", withMark(m))
		if out == "" {
			r.wait()
			return false
		}
		if !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), "lifetime") {
			t.Errorf("Exec = %v, want ErrBoxLost with the reason", err)
		}
		r.ended(t, m, 71)
		return true
	})
}

// TestWorkerKilled: kill -9 of the worker, nobody else to clean up.
func TestWorkerKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := tempRoot(t)
	m := mark(t)
	worker := exec.Command(self)
	temp := t.TempDir()
	worker.Env = append(os.Environ(), workerEnv+"="+root, boxFileEnv+"="+boxFile, "TMPDIR="+temp, m)
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "running\n" {
		t.Fatalf("worker said %q, %v", line, err)
	}
	begin := time.Now()
	_ = worker.Process.Kill()
	_ = worker.Wait()
	eventually.True(t, eventually.Patience, "workspace and processes are gone", func() bool {
		_, err := os.Stat(root)
		return os.IsNotExist(err) && marked("IN_BOX="+root) == 0
	})
	t.Logf("all gone %v after the kill", time.Since(begin))
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the worker left temporary files: %v, %v", left, err)
	}
}

// runWorker is the process that TestWorkerKilled kills.
func runWorker() {
	root := os.Getenv(workerEnv)
	work := filepath.Join(root, "work")
	if err := errors.Join(os.Mkdir(work, 0o755), os.Chmod(root, 0o711)); err != nil {
		panic(err)
	}
	conn, _, err := spawn(os.Stderr)
	if err != nil {
		panic(err)
	}
	s, err := supervisor.Connect(context.Background(), conn, supervisor.Config{Workdir: work, User: stepUser(), Root: root})
	if err != nil {
		panic(err)
	}
	cmd := sh("setsid sleep 600 & trap '' TERM; mkdir -p a/b/c; echo running; sleep 600; sleep 600")
	cmd.Env = map[string]string{"IN_BOX": root}
	cmd.Output = func(_ container.Stream, b []byte) { _, _ = os.Stdout.Write(b) }
	_, err = s.Exec(context.Background(), cmd)
	panic(err)
}

// raw speaks the protocol by hand.
func raw(t *testing.T, deadMan time.Duration) (*rig, *os.File) {
	t.Helper()
	root := tempRoot(t)
	r := newRig(t, root)
	conn := r.start()
	t.Cleanup(func() { _ = conn.Close() })
	u := stepUser()
	set := wire.Settings{Workdir: r.work, Root: root, Home: "/", UID: u.UID, GID: u.GID, DeadMan: deadMan, Lifetime: time.Hour}
	if _, err := conn.Write(wire.AppendFrame(nil, wire.Hello, 0, set.Encode())); err != nil {
		t.Fatal(err)
	}
	f, err := wire.ReadFrame(conn, wire.Alloc)
	if err != nil || f.Type != wire.Ready {
		t.Fatalf("answer to Hello = %+v, %v", f, err)
	}
	return r, conn
}

func TestSilence(t *testing.T) {
	begin := time.Now()
	r, conn := raw(t, 500*time.Millisecond)
	m := mark(t)
	cmd := wire.Command{Args: []string{"/bin/sh", "-c", "setsid sleep 600 & sleep 600"}, Env: []string{m}, UID: -1, GID: -1}
	if _, err := conn.Write(wire.AppendFrame(nil, wire.Open, 1, append([]byte{byte(wire.KindExec)}, cmd.Encode()...))); err != nil {
		t.Fatal(err)
	}
	r.ended(t, m, 72)
	if took := time.Since(begin); took < 400*time.Millisecond || took > eventually.Patience {
		t.Errorf("it ended after %v, want about 500ms", took)
	}
}

// A box whose stdout nobody reads still ends when its worker is gone.
func TestSilenceWithFullPipe(t *testing.T) {
	t.Parallel()
	r, conn := raw(t, 500*time.Millisecond)
	m := mark(t)
	for id := uint32(1); id <= 8; id++ {
		cmd := wire.Command{Args: []string{"yes"}, Env: []string{m}, UID: -1, GID: -1}
		if _, err := conn.Write(wire.AppendFrame(nil, wire.Open, id, append([]byte{byte(wire.KindExec)}, cmd.Encode()...))); err != nil {
			t.Fatal(err)
		}
	}
	r.ended(t, m, 72)
}

// A tree too deep for rm is wiped all the same, and quickly.
func TestDeepWipe(t *testing.T) {
	r := setup(t)
	depth := 1500
	if os.Getenv("SLIPWAY_LONG_TESTS") != "" {
		depth = 30000
	}
	makeDeep(t, r.work, depth)
	x, out := r.sh(`mkdir -p closed/in; echo x > closed/in/f; chmod 0 closed/in closed; mkdir wide; cd wide; seq 1 4500 | xargs touch`)
	if x.Code != 0 {
		t.Fatalf("make the tree: %+v %s", x, out)
	}
	begin := time.Now()
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	r.ended(t, "SLIPWAY_MARK=none", 0)
	t.Logf("wiped in %v", time.Since(begin))
}

// makeDeep makes a chain of folders that belongs to the steps' user.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	for i := 0; i < depth && err == nil; i++ {
		var next int
		if err = unix.Mkdirat(fd, "d", 0o755); err == nil {
			err = unix.Fchownat(fd, "d", stepUser().UID, stepUser().GID, 0)
		}
		if err == nil {
			next, err = unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		}
		_ = unix.Close(fd)
		fd = next
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
}
