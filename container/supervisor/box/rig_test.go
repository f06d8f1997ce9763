//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

const jobUID, jobGID = 54321, 54322

// The test's program is the box, and its step processes.
func init() {
	if len(os.Args) == 2 && os.Args[0] == "box" {
		main()
	}
	boxtest.Role("child", func() {
		_, _ = unix.SetNonblock(0, true), unix.SetNonblock(1, true) // as a socket may be that somebody else has used
		os.Exit(runBox(term()))
	})
	boxtest.Role("process 1", func() {
		_, _ = os.Stderr.WriteString("make a container: " + container1().Error() + "\n")
		os.Exit(1)
	})
}

// boxRoot is where process 1 sees the test's folder.
const boxRoot = "/tmp/root"

// container1 makes the folders of a process that is alone in its namespaces: a /tmp of its own, so that nothing of the
// machine is wiped, with the working folder at boxRoot. Then it becomes a box with the rights that one has on an engine: root
// with more of them may open every folder. It returns only with an error.
func container1() error {
	if os.Getpid() != 1 {
		return errors.New("this is not process 1")
	}
	here, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/tmp", "tmpfs", 0},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return &os.PathError{Op: "mount", Path: m.target, Err: err}
		}
	}
	if err := errors.Join(os.Chmod("/tmp", 0o755), os.Mkdir(boxRoot, 0o755)); err != nil {
		return err
	}
	err = unix.Mount("/proc/self/fd/"+itoa(here), boxRoot, "", unix.MS_BIND, "")
	if err := errors.Join(err, unix.Close(here)); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		switch c {
		case unix.CAP_KILL, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN: // supervisor.Capabilities
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { // an older kernel has fewer
			return os.NewSyscallError("give up a capability", err)
		}
	}
	return os.NewSyscallError("become the box", unix.Exec("/proc/self/exe", []string{"box", "process 1"}, os.Environ()))
}

// rig is a box as another process, and the worker's session with it.
type rig struct {
	*supervisor.Session
	t     *testing.T
	alone bool   // process 1 of its own namespace
	root  string // holds work and tmp, as the test sees them
	mark  string
	cmd   *exec.Cmd
	said  *eventually.Buffer
	wait  func() int // its exit code
}

// eachKind runs a test with a box that is a child, and with one that is process 1.
func eachKind(t *testing.T, fn func(t *testing.T, alone bool)) {
	boxtest.NeedsShield(t)
	t.Run("child", func(t *testing.T) { fn(t, false) })
	t.Run("process 1", func(t *testing.T) {
		boxtest.NeedsRoot(t)
		fn(t, true)
	})
}

// setup starts a box and connects to it.
func setup(t *testing.T, alone bool, change ...func(*supervisor.Config)) *rig {
	t.Helper()
	r, conn := launchBox(t, alone)
	cfg := r.config()
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Patience)
	defer cancel()
	var err error
	if r.Session, err = supervisor.Connect(ctx, conn, cfg); err != nil {
		t.Fatalf("Connect: %v; it said: %s", err, r.said)
	}
	t.Cleanup(func() { _ = r.Close(); r.wait() })
	return r
}

func (r *rig) config() supervisor.Config {
	seen := r.root
	if r.alone {
		seen = boxRoot
	}
	cfg := supervisor.Config{
		Workdir: seen + "/work", Scratch: []string{seen + "/tmp"}, Home: seen + "/tmp", Env: map[string]string{},
		User: container.User{UID: os.Geteuid(), GID: os.Getegid()},
	}
	if os.Geteuid() == 0 {
		cfg.User = container.User{UID: jobUID, GID: jobGID}
	}
	if !r.alone {
		cfg.Root = seen
	}
	k, v, _ := strings.Cut(r.mark, "=")
	cfg.Env[k] = v
	return cfg
}

// launchBox starts a box that waits for its greeting on conn.
func launchBox(t *testing.T, alone bool) (*rig, *os.File) {
	t.Helper()
	r := &rig{t: t, alone: alone, root: filepath.Join(t.TempDir(), "root"), mark: boxtest.Mark(t), said: &eventually.Buffer{}}
	for _, d := range []string{r.root, filepath.Join(r.root, "work"), filepath.Join(r.root, "tmp")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for d := r.root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetNonblock(pair[0], true)
	conn, theirs := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "box")
	defer theirs.Close()
	t.Cleanup(func() { _ = conn.Close() })
	r.cmd = boxtest.Command(t, map[bool]string{false: "child", true: "process 1"}[alone])
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr, r.cmd.Dir = theirs, theirs, r.said, r.root
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if alone {
		r.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	if err := r.cmd.Start(); err != nil {
		if alone && errors.Is(err, unix.EPERM) {
			t.Skipf("needs namespaces: %v", err)
		}
		t.Fatal(err)
	}
	r.wait = sync.OnceValue(func() int {
		timer := time.AfterFunc(6*eventually.Patience, func() { _ = r.cmd.Process.Kill() }) // it hangs
		defer timer.Stop()
		_ = r.cmd.Wait() // the exit code tells
		return r.cmd.ProcessState.ExitCode()
	})
	t.Cleanup(func() {
		_ = conn.Close()
		r.wait()
		boxtest.Gone(t, r.mark)
	})
	return r, conn
}

// greeted starts a box and greets it by hand.
func greeted(t *testing.T, alone bool, deadMan time.Duration) (*rig, *os.File) {
	t.Helper()
	r, conn := launchBox(t, alone)
	cfg := r.config()
	set := wire.Settings{
		Workdir: cfg.Workdir, Root: cfg.Root, Home: cfg.Home, UID: cfg.User.UID, GID: cfg.User.GID,
		Env: []string{r.mark}, Scratch: cfg.Scratch, DeadMan: deadMan, Lifetime: time.Hour,
	}
	send(t, conn, wire.AppendFrame(nil, wire.Hello, 0, set.Encode()))
	f, err := wire.ReadFrame(conn, wire.Alloc)
	if err != nil || f.Type != wire.Ready {
		t.Fatalf("answer to Hello: got %+v, %v, want Ready; it said: %s", f, err, r.said)
	}
	return r, conn
}

func send(t *testing.T, conn io.Writer, b []byte) {
	t.Helper()
	if _, err := conn.Write(b); err != nil && !errors.Is(err, unix.EPIPE) {
		t.Fatal(err)
	}
}

func openExec(id uint32, cmd wire.Command) []byte {
	return wire.AppendFrame(nil, wire.Open, id, append([]byte{byte(wire.KindExec)}, cmd.Encode()...))
}

// ended checks how the box has ended, and that nothing of it is left.
func (r *rig) ended(code int) {
	r.t.Helper()
	if got := r.wait(); got != code {
		r.t.Errorf("exit code of the box: got %d, want %d; it said: %s", got, code, r.said)
	}
	if left := boxtest.Marked(r.mark); len(left) > 0 {
		r.t.Errorf("processes %v are left, want none", left)
	}
	if !r.alone {
		if _, err := os.Stat(r.root); !os.IsNotExist(err) {
			r.t.Errorf("the box's root: %v, want it gone", err)
		}
		return
	}
	for _, d := range []string{"work", "tmp"} {
		if list, err := os.ReadDir(filepath.Join(r.root, d)); err != nil || len(list) > 0 {
			r.t.Errorf("%s: got %v, %v; want it empty", d, list, err)
		}
	}
}

func sh(script string, change ...func(*container.Command)) container.Command {
	cmd := container.Command{Args: []string{"/bin/sh", "-c", script}}
	for _, c := range change {
		c(&cmd)
	}
	return cmd
}

// run runs a script to its end and returns its output.
func (r *rig) run(script string, change ...func(*container.Command)) (container.Exit, string) {
	r.t.Helper()
	var out strings.Builder
	cmd := sh(script, change...)
	cmd.Output = func(_ container.Stream, b []byte) { out.Write(b) }
	x, err := r.Exec(r.t.Context(), cmd)
	if err != nil {
		r.t.Fatalf("Exec(%q): %v; the box said: %s", script, err, r.said)
	}
	return x, out.String()
}

// begin starts a script, and returns when it has printed "ready". The result comes on the channel.
func (r *rig) begin(script string, change ...func(*container.Command)) <-chan result {
	r.t.Helper()
	ready, done := make(chan struct{}), make(chan result, 1)
	var once sync.Once
	var out eventually.Buffer
	cmd := sh(script, change...)
	cmd.Output = func(_ container.Stream, b []byte) {
		_, _ = out.Write(b)
		if strings.Contains(out.String(), "ready") {
			once.Do(func() { close(ready) })
		}
	}
	go func() {
		x, err := r.Exec(context.WithoutCancel(r.t.Context()), cmd)
		done <- result{x, err, out.String()}
	}()
	select {
	case <-ready:
	case <-time.After(eventually.Patience):
		r.t.Fatalf("%q printed no ready within %v, but %q; the box said: %s", script, eventually.Patience, out.String(), r.said)
	}
	return done
}

type result struct {
	container.Exit
	err    error
	output string
}

// hiding is a tree of processes that has left session and parent, and does not listen.
const hiding = `setsid sleep 600 & (setsid sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done' &) ; until [ -e up ]; do sleep 0.02; done; rm up; `
