package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

// A client may wait for a server in silence: then only the probes tell that it is away.
func TestJob_QueueAway(t *testing.T) {
	for _, tc := range []struct {
		name  string
		away  time.Duration // from the ninth second on
		event time.Duration // when the last event comes
		want  string
	}{
		{"never", 0, time.Minute, "1.1 1.2 1.3 1.4 1.5 succeeded"},
		{"for a while", 40 * time.Second, 3 * time.Minute, "1.1 1.2 1.3 1.4 disconnected reconnected 1.5 succeeded"},
		{"until an event comes in the middle of a probe", time.Hour, 31 * time.Second, "1.1 1.2 1.3 1.4 disconnected reconnected 1.5 disconnected succeeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &faulty{calls: []call{{whole(), nil}}, silent: true, lastIn: tc.event, result: succeeded(), resultIn: 4 * time.Minute}
				defer time.AfterFunc(9*time.Second, func() { q.away.Store(tc.away > 0) }).Stop()
				defer time.AfterFunc(9*time.Second+tc.away, func() { q.away.Store(false) }).Stop()
				got, err := words(Job(t.Context(), q, "X"))
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
			})
		})
	}
}

// TestJob_EventsUnreadable: a client that may not read the events says so; its job goes on.
func TestJob_EventsUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("read events: permission denied")
		var told error
		var got []string
		for u, err := range Job(t.Context(), &faulty{calls: []call{{nil, denied}}, state: job.StateRunning, result: succeeded(), resultIn: time.Minute}, "X") {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := u.(Disconnected); ok {
				told = d.Err
			}
			got = append(got, word(u))
		}
		if want := "disconnected waiting: running succeeded"; strings.Join(got, " ") != want || !errors.Is(told, denied) {
			t.Errorf("got %q with %v, want %q with %v", got, told, want, denied)
		}
	})
}

// TestJob_ShortBreak: a connection that breaks once and is made again is nothing to tell.
func TestJob_ShortBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &faulty{calls: []call{{whole()[:2], errAway}, {whole()[:2], nil}}, silent: true, state: job.StateRunning, result: succeeded(), resultIn: time.Minute}
		got, err := words(Job(t.Context(), q, "X"))
		if want := "1.1 1.2 succeeded"; err != nil || strings.Join(got, " ") != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})
}

// TestJob_StopWhileProbing: a probe that the caller's own context cut short tells nothing about the queue. What comes
// first is left to chance, hence the rounds.
func TestJob_StopWhileProbing(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), probeEvery+probeTimeout/2)
			defer cancel()
			q := &faulty{silent: true, resultIn: time.Hour}
			q.away.Store(true)
			if got, err := words(Job(ctx, q, "X")); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %q, %v; want the end of the context alone", got, err)
			}
		})
	}
}

func TestChange(t *testing.T) {
	away := errors.New("away")
	lost, got := false, []string{}
	for _, err := range []error{nil, away, away, nil, nil, away} {
		got = append(got, fmt.Sprintf("%T", change(&lost, err)))
	}
	want := []string{"<nil>", "follow.Disconnected", "<nil>", "follow.Reconnected", "<nil>", "follow.Disconnected"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
