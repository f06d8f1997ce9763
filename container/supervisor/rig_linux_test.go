package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
)

var boxFile string

// What TestWorkerKilled gives to its worker: the folder of the box, and boxFile.
const (
	workerEnv  = "SLIPWAY_TEST_WORKER"
	boxFileEnv = "SLIPWAY_TEST_BOX_FILE"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		boxFile = os.Getenv(boxFileEnv) // a process that is killed removes none of its own
		runWorker()
	}
	dir, err := os.MkdirTemp("", "slipway-supervisor-test-")
	if err != nil {
		panic(err)
	}
	data, err := supervisor.Binary(runtime.GOARCH)
	if err != nil {
		panic(err)
	}
	boxFile = filepath.Join(dir, "box")
	if err := os.WriteFile(boxFile, data, 0o755); err != nil {
		panic(err)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // they wait for signals and deadlines more than they compute
	code := m.Run()
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// rig is a real supervisor as a child process, with a Session on it.
type rig struct {
	*supervisor.Session
	t      testing.TB
	root   string
	work   string
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	wait   func() int // its exit code
}

// stepUser runs the commands: another one than the supervisor's, if that can be.
func stepUser() container.User {
	if os.Geteuid() == 0 {
		return container.DefaultUser
	}
	return container.User{UID: os.Geteuid(), GID: os.Getegid()}
}

func setup(t testing.TB, change ...func(*supervisor.Config)) *rig {
	t.Helper()
	root := tempRoot(t)
	r := newRig(t, root)
	conn := r.start()
	cfg := supervisor.Config{
		Workdir: r.work, User: stepUser(), Root: root, Scratch: []string{filepath.Join(root, "tmp")}, Home: filepath.Join(root, "tmp"),
	}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var err error
	if r.Session, err = supervisor.Connect(ctx, conn, cfg); err != nil {
		t.Fatalf("Connect: %v; it said: %s", err, r.stderr)
	}
	t.Cleanup(func() {
		_ = r.Close()
		r.wait()
		if _, err := os.Stat(root); err == nil {
			t.Errorf("%s is still there after the box ended; it said: %s", root, r.stderr)
		}
	})
	return r
}

// tempRoot makes a folder that the steps' user can get at.
func tempRoot(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newRig makes the folders.
func newRig(t testing.TB, root string) *rig {
	t.Helper()
	r := &rig{t: t, root: root, work: filepath.Join(root, "work"), stderr: &bytes.Buffer{}}
	if err := errors.Join(os.Chmod(root, 0o711), os.Mkdir(r.work, 0o755), os.Mkdir(filepath.Join(root, "tmp"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) start() *os.File {
	r.t.Helper()
	conn, cmd, err := spawn(r.stderr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.cmd = cmd
	r.wait = sync.OnceValue(func() int {
		timer := time.AfterFunc(60*time.Second, func() { _ = r.cmd.Process.Kill() })
		defer timer.Stop()
		_ = r.cmd.Wait()
		return r.cmd.ProcessState.ExitCode()
	})
	r.t.Cleanup(func() {
		if r.Session == nil {
			_ = r.cmd.Process.Kill()
		}
		r.wait()
	})
	return conn
}

// spawn starts a supervisor with its stdin and stdout on one end of a socketpair, and returns the other.
func spawn(stderr io.Writer) (*os.File, *exec.Cmd, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(pair[0], true)
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	defer theirs.Close()
	cmd := exec.Command(boxFile)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 10 * time.Second // a box that had to be killed leaves children with its stderr
	return os.NewFile(uintptr(pair[0]), "ours"), cmd, cmd.Start()
}

// sh runs a script, and returns its exit and all it printed.
func (r *rig) sh(script string, change ...func(*container.Command)) (container.Exit, string) {
	r.t.Helper()
	x, out, err := r.try(r.t.Context(), script, change...)
	if err != nil {
		r.t.Fatalf("Exec(%q): %v; it said: %s", script, err, r.stderr)
	}
	return x, out
}

func (r *rig) try(ctx context.Context, script string, change ...func(*container.Command)) (container.Exit, string, error) {
	var out strings.Builder
	cmd := container.Command{Args: []string{"/bin/sh", "-c", script}, Output: func(_ container.Stream, b []byte) { out.Write(b) }}
	for _, c := range change {
		c(&cmd)
	}
	x, err := r.Exec(ctx, cmd)
	return x, out.String(), err
}

// mark returns an environment variable that tells this test's processes from all others.
func mark(t testing.TB) string {
	return "SLIPWAY_MARK=" + t.Name() + strconv.Itoa(int(time.Now().UnixNano()))
}

// marked counts the processes that carry the mark.
func marked(mark string) int {
	n := 0
	envs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range envs {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(mark)) {
			n++
		}
	}
	return n
}

func withMark(m string) func(*container.Command) {
	k, v, _ := strings.Cut(m, "=")
	return func(c *container.Command) { c.Env = map[string]string{k: v} }
}
