//go:build linux

package step

import (
	"os"
	"strings"
	"testing"
	"time"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

// The pool starts the test's program again, as a step process.
func init() {
	if len(os.Args) == 2 && os.Args[0] == "box" && (os.Args[1] == Arg || os.Args[1] == ArgAlone) {
		if err := Run(os.Args[1] == ArgAlone); err != nil {
			_, _ = os.Stderr.WriteString("step process: " + err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// rig is a pool, and what its commands have printed.
type rig struct {
	*Pool
	t    *testing.T
	mark string
	dir  string // where commands run
}

func setup(t *testing.T) *rig {
	t.Helper()
	boxtest.NeedsShield(t)
	r := &rig{Pool: NewPool(oom.OpenScore()), t: t, mark: boxtest.Mark(t), dir: t.TempDir()}
	t.Cleanup(func() {
		for _, s := range r.idle {
			r.Drop(s)
		}
		boxtest.Gone(t, r.mark)
	})
	return r
}

// command is a shell script as this process's user.
func (r *rig) command(script string, change ...func(*wire.Command)) wire.Command {
	cmd := wire.Command{
		Args: []string{"/bin/sh", "-c", script}, Dir: r.dir, UID: os.Geteuid(), GID: os.Getegid(),
		Env: []string{"PATH=" + os.Getenv("PATH"), r.mark},
	}
	for _, c := range change {
		c(&cmd)
	}
	return cmd
}

func timeout(d, grace time.Duration) func(*wire.Command) {
	return func(c *wire.Command) { c.Timeout, c.Grace = d, grace }
}

// started is a command under way.
type started struct {
	*Proc
	r   *rig
	out *os.File
}

// start runs cmd in proc, with its output in a file.
func (r *rig) start(proc *Proc, cmd wire.Command) started {
	r.t.Helper()
	out, err := os.CreateTemp(r.t.TempDir(), "out")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = out.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		r.t.Fatal(err)
	}
	defer null.Close()
	if err := proc.Start(cmd, [3]int{int(null.Fd()), int(out.Fd()), int(out.Fd())}); err != nil {
		r.t.Fatalf("start: %v", err)
	}
	return started{proc, r, out}
}

// printed waits until the command has printed text.
func (s started) printed(text string) {
	s.r.t.Helper()
	eventually.True(s.r.t, eventually.Patience, "the command prints "+text, func() bool { return strings.Contains(s.output(), text) })
}

func (s started) output() string {
	b, _ := os.ReadFile(s.out.Name())
	return string(b)
}

// end waits for the command's end, and checks that nothing of it is left.
func (s started) end() wire.Exit {
	s.r.t.Helper()
	timer := time.AfterFunc(3*eventually.Patience, s.Kill) // it hangs
	defer timer.Stop()
	x, err := s.Wait(s.Drained) // the output is a file, which nobody waits for
	if err != nil {
		s.r.t.Fatalf("wait: %v", err)
	}
	if left := boxtest.Marked(s.r.mark); len(left) > 0 {
		s.r.t.Errorf("after the end of the command: processes %v, want none", left)
	}
	return x
}

// run runs one command in a process of the pool.
func (r *rig) run(cmd wire.Command) (wire.Exit, string) {
	r.t.Helper()
	proc := r.take()
	s := r.start(proc, cmd)
	x := s.end()
	r.Give(proc)
	return x, s.output()
}

func (r *rig) take() *Proc {
	r.t.Helper()
	proc, err := r.Take()
	if err != nil {
		r.t.Fatalf("take: %v", err)
	}
	return proc
}
