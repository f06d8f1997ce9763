package jobtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"slipway/job"
)

var cancelTests = map[string]func(*testing.T, *suite){
	"cancel a queued job":              cancelQueued,
	"cancel a scheduled job":           cancelScheduled,
	"cancel a running job, then abort": cancelRunning,
	"cancel a job that waits to retry": cancelDelayed,
	"cancel a done job":                cancelDone,
	"cancel an unknown job":            cancelUnknown,
	"cancel wins over a retry":         cancelThenRequeue,
	"cancel of a dead worker's job":    cancelOrphan,
	"cancel races with commit":         cancelRace,
}

func (s *suite) cancel(id job.ID, mode job.CancelMode, want job.State) {
	s.t.Helper()
	if met, err := s.Client.Cancel(s.t.Context(), id, mode); err != nil || met != want {
		s.t.Fatalf("Cancel: got state %q, %v; want %s", met, err, want)
	}
}

// cancelDelayed cancels a job that waits until due.
func (s *suite) cancelDelayed(id job.ID, due time.Time) {
	s.t.Helper()
	met, err := s.Client.Cancel(s.t.Context(), id, job.Cancel)
	if err != nil {
		s.t.Fatalf("Cancel: %v", err)
	}
	s.delayed(met, due)
}

func cancelQueued(t *testing.T, s *suite) {
	id := s.submit()
	s.cancel(id, job.Cancel, job.StateQueued)
	st := s.status(id, job.StateCanceled)
	if st.Reason != job.ReasonCanceledByUser {
		t.Errorf("reason: got %s, want canceled_by_user", st.Reason)
	}
	if r := s.result(id, job.Canceled); r.Attempt != 0 {
		t.Errorf("attempt: got %d, want 0, for it never started", r.Attempt)
	}
	s.cancel(id, job.Cancel, job.StateCanceled)
	s.nothing(s.Join(t, "w1"), s.Timing.AckWait/2)
}

func cancelScheduled(t *testing.T, s *suite) {
	due := time.Now().Add(s.bound(1200 * time.Millisecond))
	id := s.submit(func(j *job.Job) { j.NotBefore = due })
	s.cancelDelayed(id, due)
	s.result(id, job.Canceled)
	s.nothing(s.Join(t, "w1"), time.Until(due)+500*time.Millisecond)
	s.status(id, job.StateCanceled)
}

func cancelRunning(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	s.cancel(id, job.Cancel, job.StateRunning)
	s.mode(l, job.Cancel)
	if st := s.status(id, job.StateRunning); !st.Cancel {
		t.Error("status: got no cancel_requested, want it")
	}
	s.cancel(id, job.Abort, job.StateRunning)
	s.mode(l, job.Abort)
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("Extend of a canceled job: got %v, want none", err)
	}
	r, err := l.Commit(t.Context(), success())
	if err != nil || r.Outcome != job.Canceled || r.Reason != job.ReasonCanceledByUser || len(r.Steps) != 1 {
		t.Fatalf("Commit: got %+v, %v; want canceled, with what the steps did", r, err)
	}
	s.result(id, job.Canceled)
}

func cancelDelayed(t *testing.T, s *suite) {
	for name, delay := range map[string]time.Duration{"short": s.Timing.AckWait / 2, "long": s.Timing.AckWait * 3 / 2} {
		w := s.Join(t, "w-"+name)
		id := s.submit()
		l := s.next(w)
		due := time.Now().Add(delay)
		if err := l.Requeue(t.Context(), job.ClassInfra, delay, job.Failure{}); err != nil {
			t.Fatalf("Requeue: %v", err)
		}
		s.cancelDelayed(id, due)
		if r := s.result(id, job.Canceled); r.Attempt != 1 {
			t.Errorf("attempt: got %d, want 1", r.Attempt)
		}
		s.nothing(w, delay+s.Timing.AckWait/2)
	}
}

func cancelDone(t *testing.T, s *suite) {
	id := s.submit()
	s.commit(s.next(s.Join(t, "w1")))
	s.cancel(id, job.Cancel, job.StateDone)
	s.result(id, job.Succeeded)
}

func cancelUnknown(t *testing.T, s *suite) {
	if _, err := s.Client.Cancel(t.Context(), job.NewID(), job.Cancel); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("Cancel: got %v, want ErrNotFound", err)
	}
}

func cancelThenRequeue(t *testing.T, s *suite) {
	w := s.Join(t, "w1")
	for _, end := range []func(job.Lease) error{
		func(l job.Lease) error { return l.Requeue(t.Context(), job.ClassInfra, 0, job.Failure{}) },
		func(l job.Lease) error { return l.Release(t.Context()) },
	} {
		id := s.submit()
		l := s.next(w)
		s.cancel(id, job.Cancel, job.StateRunning)
		if err := end(l); err != nil {
			t.Fatalf("give back: %v", err)
		}
		s.result(id, job.Canceled)
		s.nothing(w, s.Timing.AckWait/2)
	}
}

func cancelOrphan(t *testing.T, s *suite) {
	id := s.submit()
	s.next(s.Join(t, "w1"))
	s.Kill("w1")
	s.cancel(id, job.Cancel, job.StateRunning)
	stop := s.spare(s.Join(t, "w2"))
	s.result(id, job.Canceled)
	stop()
}

func cancelRace(t *testing.T, s *suite) {
	w := s.Join(t, "w1")
	won := map[job.Outcome]int{}
	for range 20 {
		id := s.submit()
		l := s.next(w)
		var wg sync.WaitGroup
		var met job.State
		wg.Go(func() {
			var err error
			if met, err = s.Client.Cancel(t.Context(), id, job.Cancel); err != nil {
				t.Errorf("Cancel: %v", err)
			}
		})
		r := s.commit(l)
		wg.Wait()
		if met == job.StateRunning && r.Outcome != job.Canceled {
			// It met a running job, and lost the compare-and-set, or it would have said so.
			t.Errorf("Cancel met a running job, but the result is %s", r.Outcome)
		}
		if met == job.StateDone && r.Outcome != job.Succeeded {
			t.Errorf("Cancel came too late, but the result is %s", r.Outcome)
		}
		s.result(id, r.Outcome)
		s.status(id, job.FinalState(r.Outcome))
		won[r.Outcome]++
	}
	t.Logf("outcomes: %v", won)
}
