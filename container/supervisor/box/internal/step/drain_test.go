//go:build linux

package step

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

// drained returns a step whose leader has just ended after ran, with others alive.
func drained(t *testing.T, ran, limit time.Duration) *step {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	s := &step{
		control: &fdReader{fd: int(w.Fd())}, state: running, ended: true, pidfd: -1,
		start: time.Now().Add(-ran), cmd: wire.Command{Timeout: limit}, left: map[proctree.ID]bool{},
	}
	s.drain()
	if f, err := wire.ReadFrame(r, wire.Alloc); err != nil || f.Type != wire.EOF {
		t.Errorf("the box is told %+v, %v; want EOF", f, err)
	}
	return s
}

// The rest of a tree has until DrainLimit or the timeout, and DrainTime in any case.
func TestDrainDue(t *testing.T) {
	for _, tt := range []struct {
		name       string
		ran, limit time.Duration
		want       time.Duration // while output comes
	}{
		{"without a timeout", time.Hour, 0, DrainLimit},
		{"the timeout is far", time.Second, time.Hour, DrainLimit},
		{"the timeout comes first", 57 * time.Second, time.Minute, 3 * time.Second},
		{"the timeout is all but over", time.Minute - time.Millisecond, time.Minute, DrainTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := drained(t, tt.ran, tt.limit)
			if got := time.Until(s.due); s.state != draining || got != tt.want {
				t.Errorf("%s: got state %d, due in %v; want draining, %v", tt.name, s.state, got, tt.want)
			}
			s.obey(order{frame: wire.Frame{Type: wire.EOF}})
			if got := time.Until(s.due); s.state != draining || got != DrainTime {
				t.Errorf("%s, without output: got state %d, due in %v; want draining, %v", tt.name, s.state, got, DrainTime)
			}
			s.due = time.Now().Add(time.Millisecond)
			if s.obey(order{frame: wire.Frame{Type: wire.EOF}}); time.Until(s.due) != time.Millisecond {
				t.Errorf("%s, silent just before its end: due in %v, want no more time", tt.name, time.Until(s.due))
			}
		})
	}
	s := &step{state: running, pidfd: -1, printing: true}
	if s.obey(order{frame: wire.Frame{Type: wire.EOF}}); s.state != running || !s.due.IsZero() || !s.printing {
		t.Errorf("an order of the command before: got state %d, due %v; want nothing changed", s.state, s.due)
	}
}

// Output is cut if the drain ends, however it does, before the box has said that no more comes.
func TestCut(t *testing.T) {
	boxtest.Subreaper(t)
	for name, end := range map[string]func(*step){"in time": (*step).tick, "canceled": func(s *step) { s.cancel(time.Hour) }} {
		for _, silent := range []bool{false, true} {
			s := drained(t, time.Second, 0)
			if silent {
				s.fallenSilent()
			}
			boxtest.Shell(t, boxtest.Mark(t), "sleep 600")
			end(s)
			if s.exit.Cut == silent || s.state == draining || s.exit.Canceled || s.exit.TimedOut || len(s.left) == 0 {
				t.Errorf("ended %s, silent %t: got %+v, state %d, %d leftovers; want the drain over, Cut %t, and who lived as leftover",
					name, silent, s.exit, s.state, len(s.left), !silent)
			}
		}
	}
	s := &step{state: running, pidfd: -1}
	if s.tick(); s.exit.Cut {
		t.Error("a command at its timeout: got Cut, want only TimedOut")
	}
}

// What outlives its leader has until the timeout while the box says nothing, and that is no timeout of the command.
func TestDrainUntilTimeout(t *testing.T) {
	r := setup(t)
	eventually.Doubling(t, "the command is over before its timeout", func(limit time.Duration) bool {
		proc := r.take()
		s := r.start(proc, r.command("while :; do echo more; sleep 0.05; done & exit 3", timeout(limit, time.Hour)))
		told := 0
		x, err := s.Wait(func() { told++ })
		r.Drop(proc)
		if err != nil {
			t.Fatal(err)
		}
		if x.TimedOut && told == 0 {
			return false
		}
		if x.Code != 3 || x.TimedOut || !x.Cut || x.Leftovers == 0 || x.Duration < limit || told != 1 {
			t.Errorf("got %+v, told %d times; want code 3, not timed out, cut, with leftovers after %v, told once", x, told, limit)
		}
		return true
	})
}
