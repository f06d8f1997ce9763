package watch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/cmd/internal/display"
	"slipway/job"
)

// A queue that goes away in the middle of a job says so to nobody who waits for news.
func TestJob_QueueAway(t *testing.T) {
	const lost, back = "connection to the queue lost; reconnecting\n", "connection to the queue is back\n"
	for _, tc := range []struct {
		name   string
		away   time.Duration // from the tenth second on
		lastIn time.Duration
		lost   int
		back   int
	}{
		{"never", 0, time.Minute, 0, 0},
		{"for a while", 40 * time.Second, 3 * time.Minute, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out, errOut bytes.Buffer
				s := &scripted{events: wholeJob()[:10], lastIn: tc.lastIn, noFinish: true, result: failed, resultIn: 4 * time.Minute, state: job.StateRunning}
				begin := time.AfterFunc(9*time.Second, func() { s.away.Store(tc.away > 0) })
				defer begin.Stop()
				end := time.AfterFunc(9*time.Second+tc.away, func() { s.away.Store(false) })
				defer end.Stop()
				if _, err := Job(t.Context(), s, "X", display.NewHuman(display.Options{Out: &out, Err: &errOut})); err != nil {
					t.Fatal(err)
				}
				text := errOut.String()
				if strings.Count(text, lost) != tc.lost || strings.Count(text, back) != tc.back || strings.Index(text, lost) > strings.Index(text, back) {
					t.Errorf("want %q %d times and %q %d times in\n%s", lost, tc.lost, back, tc.back, text)
				}
				if strings.Contains(text, "no news yet") || strings.Contains(out.String(), "queue") {
					t.Errorf("said twice, or on stdout:\n%s%s", text, &out)
				}
			})
		})
	}
}

func TestJob_QueueAwayInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		s := &scripted{events: wholeJob()[:3], noFinish: true, result: failed, resultIn: time.Minute}
		s.away.Store(true)
		if _, err := Job(t.Context(), s, "X", display.NewJSON(display.Options{Out: &out, Err: &errOut})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\n"); got != 4 {
			t.Errorf("got %d lines on stdout, want three events and the result:\n%s", got, &out)
		}
		if got, want := errOut.String(), "connection to the queue lost; reconnecting\n"; got != want {
			t.Errorf("stderr: got %q, want %q", got, want)
		}
	})
}

// TestJob_EventsUnreadable: the queue answers, and does not let us read the events.
func TestJob_EventsUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		s := &scripted{denied: errors.New("permission denied"), state: job.StateRunning, result: failed, resultIn: time.Minute}
		if _, err := Job(t.Context(), s, "X", display.NewJSON(display.Options{Out: &out, Err: &errOut})); err != nil {
			t.Fatal(err)
		}
		if got, want := errOut.String(), "the events can't be read: permission denied; trying again\n"; got != want {
			t.Errorf("stderr: got %q, want %q", got, want)
		}
	})
}
