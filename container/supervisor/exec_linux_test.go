package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/test/children"
	"slipway/test/eventually"
)

func TestExecTable(t *testing.T) {
	r := setup(t, func(c *supervisor.Config) { c.Env = map[string]string{"BOX": "b", "BOTH": "box"} })
	if err := os.Mkdir(filepath.Join(r.work, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	uid := strconv.Itoa(stepUser().UID)
	tests := []execCase{
		{name: "true", cmd: container.Command{Args: []string{"true"}}},
		{name: "exit code", cmd: sh("exit 37"), code: 37},
		{name: "signal", cmd: sh("kill -9 $$"), code: 137},
		{name: "streams", cmd: sh("echo out; echo err >&2"), output: "out\nerr\n"},
		{name: "not found", cmd: container.Command{Args: []string{"no-such-program"}}, code: 127, errors: "not found"},
		{name: "path not found", cmd: container.Command{Args: []string{"./no"}}, code: 127, errors: "not found"},
		{name: "not executable", cmd: container.Command{Args: []string{"/etc/passwd"}}, code: 126, errors: "permission denied"},
		{name: "a folder", cmd: container.Command{Args: []string{"/etc"}}, code: 126, errors: "permission denied"},
		{name: "folder missing", cmd: container.Command{Args: []string{"true"}, Dir: "no"}, code: 126, errors: "working folder"},
		{name: "relative folder", cmd: container.Command{Args: []string{"pwd"}, Dir: "sub"}, output: r.work + "/sub\n"},
		{name: "workspace", cmd: container.Command{Args: []string{"pwd"}}, output: r.work + "\n"},
		{name: "user", cmd: sh("id -u; id -G | wc -w"), output: uid + "\n" + strconv.Itoa(len(stepGroups())) + "\n"},
		{name: "environment", cmd: container.Command{Args: []string{"sh", "-c", "echo $BOX $BOTH $OWN $CI $LANG"}, Env: map[string]string{"BOTH": "cmd", "OWN": "o"}}, output: "b cmd o true C.UTF-8\n"},
		{name: "no stdin", cmd: container.Command{Args: []string{"cat"}}},
		{name: "stdin", cmd: container.Command{Args: []string{"cat"}, Stdin: []byte("hello")}, output: "hello"},
		{name: "unread stdin", cmd: container.Command{Args: []string{"true"}, Stdin: bytes.Repeat([]byte("x"), 1<<20)}},
		{name: "large stdin", cmd: container.Command{Args: []string{"wc", "-c"}, Stdin: bytes.Repeat([]byte("x"), 3<<20)}, output: "3145728\n"},
		{name: "no new privileges", cmd: sh("grep NoNewPrivs /proc/self/status"), output: "NoNewPrivs:\t1\n"},
		{name: "open files", cmd: sh("ls /proc/self/fd | wc -l"), output: "4\n"}, // 0 1 2, and ls's own
		{name: "umask", cmd: sh("umask"), output: "0022\n"},
		{name: "first to go when memory is short", cmd: sh("[ $(cat /proc/self/oom_score_adj) -ge 300 ] && echo yes"), output: "yes\n"},
		// Signals 32 and 33 are glibc's own. Whatever its posix_spawn started, make's recipes for one, ignores them: not our doing.
		{name: "signals", cmd: sh("grep SigIgn /proc/self/status | sed 's/[01][08]0000000$/000000000/'"), output: "SigIgn:\t0000000000000000\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, r) })
	}
}

// stepGroups are the groups of a step. Root gives a step one. Without root nothing can be taken from it, so that it has
// all of the user's, such as the group of the engine's socket.
func stepGroups() map[int]bool {
	if os.Geteuid() == 0 {
		return map[int]bool{stepUser().GID: true}
	}
	groups := map[int]bool{os.Getegid(): true}
	more, _ := os.Getgroups() // never fails on Linux
	for _, g := range more {
		groups[g] = true
	}
	return groups
}

// execCase is a command that ends by itself, and what comes of it.
type execCase struct {
	name   string
	cmd    container.Command
	code   int
	output string
	errors string // part of Exit.Error
}

func (tt execCase) check(t *testing.T, r *rig) {
	var out strings.Builder
	tt.cmd.Output = func(_ container.Stream, b []byte) { out.Write(b) }
	x, err := r.Exec(t.Context(), tt.cmd)
	if err != nil {
		t.Fatalf("Exec: %v", err)
	}
	if x.Code != tt.code {
		t.Errorf("Code = %d, want %d (%+v)", x.Code, tt.code, x)
	}
	if got := out.String(); tt.output != "" && got != tt.output && got != "err\nout\n" {
		t.Errorf("output = %q, want %q", got, tt.output)
	}
	if !strings.Contains(x.Error, tt.errors) || (tt.errors == "") != (x.Error == "") {
		t.Errorf("Error = %q, want %q in it", x.Error, tt.errors)
	}
	if x.Output != int64(out.Len()) {
		t.Errorf("Output = %d, but %d bytes came", x.Output, out.Len())
	}
	if x.TimedOut || x.Canceled || x.OOM || x.Leftovers != 0 {
		t.Errorf("exit = %+v", x)
	}
}

func sh(script string) container.Command {
	return container.Command{Args: []string{"/bin/sh", "-c", script}}
}

// Whatever a command leaves running is found and killed, and the exit comes only then.
func TestTreeKill(t *testing.T) {
	t.Parallel()
	const hidden = "setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & (setsid sh -c 'sleep 600 & touch up; sleep 600' &) ; until [ -e up ]; do sleep 0.02; done; rm up; echo started; "
	tests := []treeCase{
		{"timeout", hidden + "sleep 600", eventually.Settled, time.Second, false, eventually.Patience, func(x container.Exit) bool { return x.TimedOut && x.Signal == "SIGTERM" && x.Code == 143 }},
		{"timeout at once", hidden + "sleep 600", eventually.Settled, 0, false, eventually.Patience, func(x container.Exit) bool { return x.TimedOut && x.Signal == "SIGKILL" }},
		{"deaf to TERM", "trap '' TERM; setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" & echo started; while :; do sleep 1; done", eventually.Settled, 300 * time.Millisecond, false, eventually.Patience, func(x container.Exit) bool { return x.TimedOut && x.Signal == "SIGKILL" }},
		{"canceled", hidden + "sleep 600", 0, time.Second, true, eventually.Patience, func(x container.Exit) bool { return x.Canceled && !x.TimedOut && x.Code == 143 }},
		{"leftovers", hidden + "exit 3", 0, 0, false, eventually.Patience, func(x container.Exit) bool { return x.Code == 3 && x.Leftovers >= 4 && !x.TimedOut && !x.Canceled }},
		{"pipe held", "sleep 600 & echo started", 0, 0, false, eventually.Patience, func(x container.Exit) bool { return x.Code == 0 && x.Leftovers == 1 }},
		{"stopped", "echo started; kill -STOP $$", eventually.Settled, time.Second, false, eventually.Patience, func(x container.Exit) bool { return x.TimedOut }},
		{"fork bomb", "exec bash -c 'ulimit -u 400; echo started; f() { f | f & }; f 2>/dev/null; sleep 600'", eventually.Settled, 0, false, 15 * time.Second, func(x container.Exit) bool { return x.TimedOut }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "fork bomb" { // which leaves nothing of the processors to the others
				t.Parallel()
			}
			r := setup(t)
			eventually.Doubling(t, "the command has started", func(limit time.Duration) bool {
				if tt.timeout > 0 {
					tt.timeout, tt.atMost = limit, tt.atMost+limit-tt.timeout
				}
				return tt.check(t, r)
			})
			if x, _ := r.sh("exit 5"); x.Code != 5 {
				t.Errorf("the next command = %+v", x)
			}
		})
	}
}

// treeCase is a command that is ended, or leaves something behind.
type treeCase struct {
	name    string
	script  string
	timeout time.Duration
	grace   time.Duration
	cancel  bool
	atMost  time.Duration
	want    func(container.Exit) bool
}

// check reports whether the command has started before its deadline.
func (tt treeCase) check(t *testing.T, r *rig) (started bool) {
	m := mark(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	x, out, err := r.try(ctx, tt.script, withMark(m), func(c *container.Command) {
		c.Timeout, c.Grace = tt.timeout, tt.grace
		collect := c.Output
		c.Output = func(s container.Stream, b []byte) {
			collect(s, b)
			if tt.cancel {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
		}
	})
	took := time.Since(begin)
	if n := marked(m); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err != nil {
		t.Fatalf("Exec: %v; it said: %s", err, r.stderr)
	}
	if tt.timeout > 0 && x.TimedOut && out == "" {
		_, _ = r.sh("rm -f up")
		return false
	}
	if !strings.HasPrefix(out, "started\n") {
		t.Errorf("output = %.200q, want it to begin with started", out)
	}
	if !tt.want(x) {
		t.Errorf("exit = %+v", x)
	}
	if took > tt.atMost {
		t.Errorf("took %v, want at most %v", took, tt.atMost)
	}
	return true
}

// The tail of a pipeline may still write when the leader has ended.
func TestDrain(t *testing.T) {
	r := setup(t)
	var x container.Exit
	var out string
	for range 20 { // the tail has 100 ms, which a busy machine may not give it
		if x, out = r.sh("(sleep 0.03; echo late) & echo early"); out == "early\nlate\n" && x.Leftovers == 0 {
			return
		}
	}
	t.Errorf("output = %q, leftovers %d; want both lines, none", out, x.Leftovers)
}

func TestUsage(t *testing.T) {
	r := setup(t)
	x, _ := r.sh("(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) & wait; head -c 30000000 /dev/zero | tail -c 20000000 >/dev/null")
	if x.CPU < 20*time.Millisecond {
		t.Errorf("CPU = %v, want what the child used, too", x.CPU)
	}
	if x.MaxRSS < 19<<20 || x.MaxRSS > 200<<20 {
		t.Errorf("MaxRSS = %d, want about 20 MB", x.MaxRSS)
	}
	if x.Duration < x.CPU/4 {
		t.Errorf("Duration = %v with %v of CPU", x.Duration, x.CPU)
	}
	x, _ = r.sh("true")
	if x.CPU > 100*time.Millisecond || x.MaxRSS > 19<<20 {
		t.Errorf("the next command has the usage of the one before: %+v", x)
	}
}

// A killed step process means that the exit is not known: never a success.
func TestStepProcessKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to kill the step process of another user")
	}
	r, m := setup(t), mark(t)
	go func() {
		eventually.True(t, eventually.Patience, "the command runs", func() bool { return marked(m) > 1 })
		for _, pid := range children.Of(r.cmd.Process.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be ending
		}
	}()
	_, _, err := r.try(t.Context(), "setsid sleep 600 & sleep 600; exit 0", withMark(m))
	if !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("Exec = %v, want ErrBoxLost", err)
	}
	if n := marked(m); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if x, _ := r.sh("exit 4"); x.Code != 4 {
		t.Errorf("the next command = %+v", x)
	}
}
