//go:build linux

package step

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

func TestExit(t *testing.T) {
	r := setup(t)
	for _, tt := range []struct {
		script       string
		code, signal int
		output       string
	}{
		{"exit 37", 37, 0, ""},
		{"echo out; echo err >&2", 0, 0, "out\nerr\n"},
		{"kill -9 $$", 137, 9, ""},
		{"kill -TERM $$", 143, 15, ""},
		{"exit 137", 137, 0, ""},
		{"umask; pwd; echo $#", 0, 0, "0022\n" + r.dir + "\n0\n"},
		{"grep NoNewPrivs /proc/self/status", 0, 0, "NoNewPrivs:\t1\n"},
		{"ls /proc/self/fd | wc -l", 0, 0, "4\n"}, // 0, 1, 2, and the one of ls itself: nothing of the step process
		{"cat", 0, 0, ""},
	} {
		x, out := r.run(r.command(tt.script))
		if x.Code != tt.code || x.Signal != tt.signal || out != tt.output || x.TimedOut || x.Canceled || x.Leftovers != 0 || x.Lost != "" {
			t.Errorf("%s: got %+v, %q; want code %d, signal %d, %q", tt.script, x, out, tt.code, tt.signal, tt.output)
		}
	}
}

// Usage is that of the whole tree, and of this command alone.
func TestUsage(t *testing.T) {
	r := setup(t)
	x, _ := r.run(r.command("(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done) & wait; head -c 30000000 /dev/zero | tail -c 20000000 >/dev/null"))
	if x.CPU < 10*time.Millisecond || x.MaxRSS < 19<<20 || x.Duration < x.CPU/8 {
		t.Errorf("got CPU %v, MaxRSS %d, Duration %v; want the child's time and 20 MB", x.CPU, x.MaxRSS, x.Duration)
	}
	if x, _ = r.run(r.command("true")); x.CPU > 500*time.Millisecond || x.MaxRSS > 19<<20 {
		t.Errorf("the next command: got CPU %v, MaxRSS %d; want its own", x.CPU, x.MaxRSS)
	}
}

const (
	hidden = "setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & (setsid sh -c 'sleep 600 & touch up; sleep 600' &) ; until [ -e up ]; do sleep 0.02; done; rm up; echo ready; "
	deaf   = `trap "" TERM; setsid sh -c "trap '' TERM; touch up; while :; do sleep 0.1; done" & until [ -e up ]; do sleep 0.02; done; rm up; echo ready; while :; do sleep 0.1; done`
	sleeps = "sleep 600; true"
)

// A command that is ended from outside is over only when its whole tree is.
func TestEndedFromOutside(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		grace        time.Duration
		end          func(started)
		want         func(wire.Exit) bool
	}{
		{"cancel without grace", hidden + sleeps, 0, started.Cancel, func(x wire.Exit) bool { return x.Canceled && x.Signal == 9 }},
		{"cancel with grace", hidden + sleeps, time.Minute, started.Cancel, func(x wire.Exit) bool { return x.Canceled && x.Signal == 15 }},
		{"cancel of a deaf tree", deaf, 300 * time.Millisecond, started.Cancel, func(x wire.Exit) bool { return x.Canceled && x.Signal == 9 }},
		{"cancel of a stopped leader", "echo ready; kill -STOP $$; " + sleeps, time.Minute, started.Cancel, func(x wire.Exit) bool { return x.Canceled && x.Signal == 15 }},
		{"stop with grace", hidden + sleeps, 0, func(s started) { s.Stop(time.Minute) }, func(x wire.Exit) bool { return x.Canceled && x.Signal == 15 }},
		{"stop at once is more urgent than a cancel", deaf, time.Hour, func(s started) { s.Cancel(); s.Stop(0) }, func(x wire.Exit) bool { return x.Canceled && x.Signal == 9 }},
		{"a second gentle stop changes nothing", deaf, 500 * time.Millisecond, func(s started) { s.Cancel(); s.Stop(time.Hour) }, func(x wire.Exit) bool { return x.Canceled && x.Signal == 9 && x.Duration >= 500*time.Millisecond }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := setup(t)
			proc := r.take()
			s := r.start(proc, r.command(tt.script, timeout(0, tt.grace)))
			s.printed("ready")
			tt.end(s)
			if x := s.end(); !tt.want(x) || x.TimedOut {
				t.Errorf("got %+v", x)
			}
			if x := r.start(proc, r.command("exit 5")).end(); x.Code != 5 || x.Canceled || x.Signal != 0 || x.Leftovers != 0 {
				t.Errorf("the next command of this process: got %+v, want code 5 and nothing of the one before", x)
			}
			r.Drop(proc)
		})
	}
}

func TestTimeout(t *testing.T) {
	r := setup(t)
	for _, tt := range []struct {
		script string
		grace  time.Duration
		signal int
	}{
		{"echo ready; sleep 600; true", 0, 9},
		{"echo ready; sleep 600; true", time.Minute, 15},
		{"trap '' TERM; echo ready; while :; do sleep 0.1; done", 200 * time.Millisecond, 9},
	} {
		eventually.Doubling(t, "the command is ready", func(limit time.Duration) bool {
			begin := time.Now()
			x, out := r.run(r.command(tt.script, timeout(limit, tt.grace)))
			if x.TimedOut && out == "" {
				return false
			}
			if !x.TimedOut || x.Canceled || x.Signal != tt.signal || x.Duration < limit {
				t.Errorf("%s: got %+v, want it timed out by signal %d after %v", tt.script, x, tt.signal, limit)
			}
			if took := time.Since(begin); took > limit+eventually.Patience {
				t.Errorf("%s: took %v, want at most %v", tt.script, took, limit+eventually.Patience)
			}
			return true
		})
	}
	if x, _ := r.run(r.command("exit 5")); x.Code != 5 || x.TimedOut {
		t.Errorf("the next command: got %+v, want code 5, not timed out", x)
	}
}

// What the leader leaves behind gets DrainTime, then TERM, then KILL, and is counted once each.
func TestLeftovers(t *testing.T) {
	r := setup(t)
	var x wire.Exit
	var out string
	for range 20 { // a busy machine may not let it say goodbye within the grace
		x, out = r.run(r.command("(sh -c 'trap \"echo bye; exit\" TERM; touch polite; while :; do sleep 0.02; done' &) ; (setsid sh -c 'trap \"\" TERM; touch deaf; while :; do sleep 0.1; done' &); until [ -e polite ] && [ -e deaf ]; do sleep 0.02; done; rm polite deaf; exit 3"))
		if strings.Contains(out, "bye\n") {
			break
		}
	}
	if x.Code != 3 || x.TimedOut || x.Canceled || x.Leftovers < 2 || x.Leftovers > 6 {
		t.Errorf("got %+v, want code 3 and the two shells, with their sleeps at most, as leftovers", x)
	}
	if !strings.Contains(out, "bye\n") {
		t.Errorf("output: got %q, want %q in it: TERM comes before KILL", out, "bye\n")
	}
	if least := DrainTime + leftoverGrace; x.Duration < least {
		t.Errorf("Duration: got %v, want at least %v: drain and grace", x.Duration, least)
	}
}

// The tail of a tree may end by itself within DrainTime.
func TestDrain(t *testing.T) {
	r := setup(t)
	var x wire.Exit
	var out string
	for range 20 { // a busy machine may not give it the time
		if x, out = r.run(r.command("(sleep 0.03; echo late) & echo early")); out == "early\nlate\n" && x.Leftovers == 0 {
			return
		}
	}
	t.Errorf("got %q with %d leftovers, want both lines without any", out, x.Leftovers)
}

// A cancel that comes while the rest of a tree has its time ends it at once, and changes nothing of the exit.
func TestCancelWhileDraining(t *testing.T) {
	s := &step{state: draining, ended: true, pidfd: -1, left: map[proctree.ID]bool{}}
	s.exit.Code = 3
	s.cancel(time.Hour)
	if s.state != slaying || s.exit.Canceled || s.exit.Code != 3 {
		t.Errorf("got state %d, %+v; want slaying, and the exit as it was", s.state, s.exit)
	}
	s = &step{state: idle, pidfd: -1}
	if s.cancel(0); s.state != idle || !s.due.IsZero() {
		t.Errorf("cancel without a command: got state %d, due %v; want nothing changed", s.state, s.due)
	}
}

// A leftover is what lives although its leader has ended, counted once however often it is seen.
func TestNote(t *testing.T) {
	list := []proctree.Process{{ID: proctree.ID{PID: 7, Start: 1}}, {ID: proctree.ID{PID: 7, Start: 2}}, {ID: proctree.ID{PID: 8, Start: 1}}}
	s := &step{left: map[proctree.ID]bool{}}
	if s.note(list); len(s.left) != 0 {
		t.Errorf("while the leader lives: got %d leftovers, want 0", len(s.left))
	}
	s.ended = true
	s.note(list)
	if s.note(list); len(s.left) != 3 {
		t.Errorf("afterwards: got %d leftovers, want 3: a later process of the same pid is another one", len(s.left))
	}
}

// Killing is repeated until nothing is left: one round may miss what was being forked.
func TestSlayAgain(t *testing.T) {
	boxtest.Subreaper(t)
	s := &step{state: running, pidfd: -1, left: map[proctree.ID]bool{}}
	for range 2 {
		begin := time.Now()
		s.slay()
		if s.state != slaying || !s.due.After(begin) || s.due.After(time.Now().Add(slayPause)) {
			t.Errorf("got state %d, due %v after it began; want slaying, and another round after %v", s.state, s.due.Sub(begin), slayPause)
		}
		if s.tick(); s.state != slaying || s.due.IsZero() {
			t.Errorf("after a round: got state %d, due %v; want another one", s.state, s.due)
		}
	}
}

func TestPollTimeout(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name  string
		state state
		due   time.Duration // 0: none
		want  int           // milliseconds
	}{
		{"without a command", idle, 0, 3_600_000},
		{"an end that nothing announces", running, 0, 1000},
		{"a far deadline", running, time.Hour, 1000},
		{"a near one, rounded up", running, 10*time.Millisecond + time.Microsecond, 11},
		{"a deadline within the millisecond", terming, 100 * time.Microsecond, 1},
		{"one that has passed", slaying, -time.Second, 0},
	} {
		s := &step{state: tt.state}
		if tt.due != 0 {
			s.due = now.Add(tt.due)
		}
		if got := s.pollTimeout(now); got != tt.want {
			t.Errorf("%s: got %d ms, want %d", tt.name, got, tt.want)
		}
		if got, want := s.isDue(now), tt.due < 0; got != want {
			t.Errorf("%s: due %t, want %t", tt.name, got, want)
		}
	}
}

// When the box is gone the step process kills the tree and ends.
func TestBoxGone(t *testing.T) {
	r := setup(t)
	proc := r.take()
	s := r.start(proc, r.command(hidden+sleeps))
	s.printed("ready")
	r.Drop(proc)
	boxtest.Gone(t, r.mark)
	ends(t, proc)
}

// ends waits until the step process has ended.
func ends(t *testing.T, proc *Proc) {
	t.Helper()
	eventually.True(t, eventually.Patience, "the step process ends", func() bool {
		var status unix.WaitStatus
		pid, err := unix.Wait4(proc.pid, &status, unix.WNOHANG, nil)
		return pid == proc.pid || errors.Is(err, unix.ECHILD)
	})
}

// A leader dies with its step process, and how it ended is not known.
func TestStepProcessDies(t *testing.T) {
	r := setup(t)
	proc := r.take()
	s := r.start(proc, r.command("echo ready; exec sleep 600"))
	s.printed("ready")
	proc.Kill()
	if x, err := s.Wait(func() {}); !errors.Is(err, io.EOF) {
		t.Errorf("Wait: got %+v, %v; want the end of the socket", x, err)
	}
	boxtest.Gone(t, r.mark)
	r.Drop(proc)
	ends(t, proc)
}

func TestMalformedOrder(t *testing.T) {
	r := setup(t)
	proc := r.take()
	if err := sendFDs(proc.control, wire.AppendFrame(nil, wire.Open, 0, []byte{1, 2, 3})); err != nil {
		t.Fatal(err)
	}
	if x, err := proc.Wait(func() {}); err != nil || x.Lost == "" {
		t.Errorf("got %+v, %v; want it lost", x, err)
	}
	proc.send(wire.Stop, []byte{1}) // no grace: left alone
	if x := r.start(proc, r.command("exit 4")).end(); x.Code != 4 {
		t.Errorf("the next command: got %+v, want code 4", x)
	}
	r.Drop(proc)
}

// When memory is short the kernel takes a command before its step process, and that before this process.
func TestOOMScore(t *testing.T) {
	r := setup(t)
	proc := r.take()
	own := score(t, "self")
	s := r.start(proc, r.command("cat /proc/self/oom_score_adj"))
	s.end()
	after := score(t, strconv.Itoa(proc.pid)) // its fork has long returned
	r.Drop(proc)
	command, err := strconv.Atoi(strings.TrimSpace(s.output()))
	if err != nil || after != min(own+200, 1000) || command != min(after+300, 1000) || score(t, "self") != own {
		t.Errorf("got %d for this process, %d for the step process after its command, %q for the command; want %d, 200 more, and 300 more again",
			score(t, "self"), after, s.output(), own)
	}
}

func score(t *testing.T, pid string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
	if err != nil {
		t.Skipf("needs to read the scores: %v", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
