package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

var errAway = fmt.Errorf("read events: %w", job.ErrUnavailable)

func TestJob(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    *faulty
		want string
	}{
		{"each event, then the result", &faulty{calls: []call{{whole(), nil}}}, "1.1 1.2 1.3 1.4 1.5 succeeded"},
		{"no event at all", &faulty{}, "succeeded"},
		{
			"two connections break, and each new one starts with the first event",
			&faulty{calls: []call{{whole()[:2], errAway}, {whole()[:4], errAway}, {whole(), nil}}, failing: 1},
			"1.1 1.2 1.3 1.4 1.5 succeeded",
		},
		{
			"the first connection fails at once",
			&faulty{calls: []call{{nil, errAway}, {whole(), nil}}},
			"1.1 1.2 1.3 1.4 1.5 succeeded",
		},
		{
			"a queue gives events twice",
			&faulty{calls: []call{{slices.Concat(whole()[:3], whole()), nil}}},
			"1.1 1.2 1.3 1.4 1.5 succeeded",
		},
		{
			"events that are lost on the way",
			&faulty{calls: []call{{[]job.Event{event(1, job.EventClaimed), event(4, job.EventStepEnd), event(6, job.EventFinished)}, nil}}},
			"1.1 gap(2 in 1) 1.4 gap(1 in 1) 1.6 succeeded",
		},
		{
			"the first events are not kept any more",
			&faulty{calls: []call{{whole()[3:], nil}}},
			"gap(3 in 1) 1.4 1.5 succeeded",
		},
		{
			"no event is kept any more, and the queue makes the end",
			&faulty{calls: []call{{[]job.Event{event(1, job.EventFinished)}, nil}}},
			"gap(0 in 1) 1.1 succeeded",
		},
		{
			"events go while they are followed, and the queue makes an end with a number that was there",
			&faulty{calls: []call{{whole()[:3], errAway}, {[]job.Event{event(1, job.EventFinished)}, nil}}},
			"1.1 1.2 1.3 1.1 succeeded",
		},
		{
			"a replica of the queue still has the events that the one before had lost",
			&faulty{calls: []call{{whole()[:3], errAway}, {[]job.Event{event(1, job.EventFinished)}, errAway}, {whole(), nil}}},
			"1.1 1.2 1.3 1.1 1.4 succeeded",
		},
		{
			"the connection breaks after the last event",
			&faulty{calls: []call{{whole(), errAway}, {whole(), nil}}, resultIn: time.Minute},
			"1.1 1.2 1.3 1.4 1.5 succeeded",
		},
		{
			"a job that ends before it runs has no events to miss",
			&faulty{calls: []call{{[]job.Event{eventOf(1, 0, 1, job.EventFinished)}, nil}}},
			"0.1 succeeded",
		},
		{
			"the worker of an earlier attempt wakes up",
			&faulty{calls: []call{{[]job.Event{
				event(1, job.EventClaimed), event(2, job.EventRetry), eventOf(1, 2, 1, job.EventClaimed), event(3, job.EventOutput), eventOf(1, 2, 2, job.EventFinished),
			}, nil}}},
			"1.1 1.2 2.1 2.2 succeeded",
		},
		{
			"a later attempt lost its beginning",
			&faulty{calls: []call{{[]job.Event{event(1, job.EventClaimed), eventOf(1, 2, 3, job.EventOutput), eventOf(1, 2, 4, job.EventFinished)}, nil}}},
			"1.1 gap(2 in 2) 2.3 2.4 succeeded",
		},
		{
			"a person puts the job back, and its next generation counts attempts from 1",
			&faulty{calls: []call{{slices.Concat(whole(), []job.Event{eventOf(2, 1, 1, job.EventClaimed), eventOf(2, 1, 2, job.EventFinished)}), nil}}},
			"1.1 1.2 1.3 1.4 1.5 1.1 1.2 succeeded",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.q.result = succeeded()
				got, err := words(Job(t.Context(), tc.q, "X"))
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Errorf("got %q, %v; want %q", strings.Join(got, " "), err, tc.want)
				}
			})
		})
	}
}

func TestJob_LastEventAfterTheResult(t *testing.T) {
	for _, tc := range []struct {
		name   string
		lastIn time.Duration
		want   string
		took   time.Duration
	}{
		{"late", lateEvents - time.Millisecond, "1.1 1.2 1.3 1.4 1.5 succeeded", lateEvents - time.Millisecond},
		{"too late", time.Hour, "1.1 1.2 1.3 1.4 succeeded", lateEvents},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := words(Job(t.Context(), &faulty{calls: []call{{whole(), nil}}, lastIn: tc.lastIn, result: succeeded()}, "X"))
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

func TestJob_Error(t *testing.T) {
	broken, gone := errors.New("read result: not JSON"), errors.New("the reader's own cause")
	for _, tc := range []struct {
		name   string
		q      *faulty
		cancel bool
		want   error
	}{
		{"unknown job", &faulty{calls: []call{{nil, job.ErrNotFound}}, err: job.ErrNotFound}, false, job.ErrNotFound},
		{"no queue", &faulty{calls: []call{{nil, job.ErrNotSetUp}}, err: job.ErrNotSetUp}, false, job.ErrNotSetUp},
		{"a result that nobody can read", &faulty{calls: []call{{whole(), nil}}, err: broken}, false, broken},
		{"the context ends", &faulty{silent: true, resultIn: time.Hour}, true, gone},
		{"the context ends while the queue is away", &faulty{calls: []call{{nil, errAway}}, failing: 1 << 30}, true, gone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.cancel {
					defer time.AfterFunc(7300*time.Millisecond, func() { cancel(gone) }).Stop()
				}
				got, err := words(Job(ctx, tc.q, "X"))
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v after %q, want %v", err, got, tc.want)
				}
			})
		})
	}
}

// TestJob_Leave: whatever ends the loop ends the goroutines, too.
func TestJob_Leave(t *testing.T) {
	q := func() *faulty {
		return &faulty{calls: []call{{whole(), nil}}, lastIn: time.Second, silent: true, resultIn: time.Hour}
	}
	wantEnded := func(t *testing.T, q *faulty) {
		t.Helper()
		if n := q.open.Load(); n != 0 {
			t.Errorf("%d calls of the client go on after the loop, want 0", n)
		}
	}
	t.Run("break", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := q()
			for _, err := range Job(t.Context(), q, "X") {
				if err != nil {
					t.Error(err)
				}
				break
			}
			wantEnded(t, q)
		})
	})
	t.Run("panic", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := q()
			defer func() {
				if got := recover(); got != "in the loop" {
					t.Errorf("recovered %v, want the loop's own panic", got)
				}
				wantEnded(t, q)
			}()
			for _, err := range Job(t.Context(), q, "X") {
				if err != nil {
					t.Error(err)
				}
				panic("in the loop")
			}
		})
	})
	t.Run("again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			updates := Job(t.Context(), &faulty{calls: []call{{whole(), nil}}, result: succeeded()}, "X")
			for _, err := range updates {
				if err != nil {
					t.Error(err)
				}
				break
			}
			if got, err := words(updates); err != nil || len(got) != len(whole())+1 {
				t.Errorf("the second loop over one sequence: got %q, %v; want everything again", got, err)
			}
		})
	})
}

// TestJob_SlowLoop: a loop that takes longer than every clock of Job still gets everything.
func TestJob_SlowLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		for u, err := range Job(t.Context(), &faulty{calls: []call{{whole(), nil}}, result: succeeded(), resultIn: 5 * time.Minute}, "X") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, word(u))
			<-time.After(time.Minute)
		}
		if want := "1.1 1.2 1.3 1.4 1.5 succeeded"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestJob_Waiting(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    *faulty
		want string
	}{
		{"for a worker", &faulty{state: job.StateQueued}, "waiting: queued succeeded"},
		{"for its time", &faulty{state: job.StateScheduled}, "waiting: scheduled succeeded"},
		{"with a record that nobody can read", &faulty{status: errors.New("not JSON")}, "waiting: not JSON succeeded"},
		{"for a queue that is away", &faulty{status: job.ErrUnavailable}, "disconnected succeeded"},
		{"for a step that prints nothing", &faulty{calls: []call{{whole()[:1], nil}}, state: job.StateRunning}, "1.1 succeeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.q.silent, tc.q.result, tc.q.resultIn = true, succeeded(), time.Hour
				got, err := words(Job(t.Context(), tc.q, "X"))
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
			})
		})
	}
}

func TestResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := Result(t.Context(), &faulty{failing: 3, result: succeeded()}, "X")
		if err != nil || r.Outcome != job.Succeeded {
			t.Errorf("after three failures: got %v, %v; want the result", r, err)
		}
		if got, want := time.Since(began), 3*retryDelay; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		if _, err := Result(t.Context(), &faulty{err: job.ErrNotFound}, "X"); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("unknown job: got %v, want ErrNotFound", err)
		}
	})
}

func TestStored(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    *faulty
		want string
		err  error
	}{
		{"some", &faulty{calls: []call{{whole()[1:4], nil}}, silent: true}, "gap(1 in 1) 1.2 1.3 1.4", nil},
		{"none", &faulty{silent: true}, "", nil},
		{"a failure is final", &faulty{calls: []call{{whole()[:1], errAway}}}, "1.1", job.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := words(Stored(t.Context(), tc.q, "X"))
			if !errors.Is(err, tc.err) || strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, %v; want %q, %v", strings.Join(got, " "), err, tc.want, tc.err)
			}
		})
	}
	for _, err := range Stored(t.Context(), &faulty{calls: []call{{whole(), nil}}}, "X") {
		if err != nil {
			t.Error(err)
		}
		break // nothing is left that could fail
	}
}
