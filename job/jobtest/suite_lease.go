package jobtest

import (
	"errors"
	"testing"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

var leaseTests = map[string]func(*testing.T, *suite){
	"an extended lease holds":             extended,
	"a dead worker's job is taken over":   takeOver,
	"a zombie can publish nothing":        zombie,
	"a lease ends once":                   endsOnce,
	"the first of two commits decides":    firstCommit,
	"a zombie may finish what nobody has": zombieAlone,
}

func extended(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	stop := s.hold(l)
	s.nothing(s.Join(t, "w2"), 2*s.Timing.AckWait)
	stop()
	s.commit(l)
	if r := s.result(id, job.Succeeded); r.Attempt != 1 {
		t.Errorf("attempt: got %d, want 1", r.Attempt)
	}
}

func takeOver(t *testing.T, s *suite) {
	id := s.submit()
	first := s.next(s.Join(t, "w1")).Delivery()
	s.Kill("w1")
	began := time.Now()
	l := s.next(s.Join(t, "w2"))
	d := l.Delivery()
	if d.ID != id || d.Attempt != 2 || d.Fence <= first.Fence || d.Counts != (job.Counts{Crash: 1}) {
		t.Errorf("delivery: got %+v, want attempt 2 of %s with one crash and a fence above %d", d, id, first.Fence)
	}
	if d.ClaimedAt.Before(began) || d.ClaimedAt.After(time.Now()) {
		t.Errorf("claimed at %s, want between %s and now", d.ClaimedAt, began)
	}
	if took, bound := time.Since(began), 3*s.Timing.AckWait+s.bound(2*time.Second); took > bound {
		t.Errorf("taken over after %s, want within %s", took, bound)
	}
	s.commit(l)
	if r := s.result(id, job.Succeeded); r.Worker != "w2" {
		t.Errorf("result's worker: got %s, want w2", r.Worker)
	}
}

func zombie(t *testing.T, s *suite) {
	acts := map[string]func(job.Lease) error{
		"Extend":  func(l job.Lease) error { return l.Extend(t.Context()) },
		"Commit":  func(l job.Lease) error { _, err := l.Commit(t.Context(), success()); return err },
		"Requeue": func(l job.Lease) error { return l.Requeue(t.Context(), job.ClassInfra, 0, job.Failure{}) },
		"Release": func(l job.Lease) error { return l.Release(t.Context()) },
	}
	w1 := s.Join(t, "w1")
	zombies := map[job.ID]job.Lease{}
	var stops []func()
	for range acts {
		s.submit()
		l := s.next(w1)
		zombies[l.Delivery().ID] = l
		stops = append(stops, s.hold(l))
	}
	for _, stop := range stops {
		stop()
	}
	s.Kill("w1")
	w2 := s.Join(t, "w2")
	for name, act := range acts {
		l := s.next(w2)
		id := l.Delivery().ID
		if zombies[id] == nil {
			t.Fatalf("delivery: got job %s, want one of the zombie's", id)
		}
		s.lost(name, act(zombies[id]))
		s.lost("a second "+name, act(zombies[id]))
		stop := s.hold(l) // the rest may take longer than AckWait
		stop()
		if st := s.status(id, job.StateRunning); st.Worker != "w2" {
			t.Errorf("after the zombie's %s: got worker %s, want w2", name, st.Worker)
		}
		s.commit(l)
		if r := s.result(id, job.Succeeded); r.Fence != l.Delivery().Fence {
			t.Errorf("after the zombie's %s: got the result of fence %d, want %d", name, r.Fence, l.Delivery().Fence)
		}
	}
}

func zombieAlone(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	s.Kill("w1")
	if !pause.For(t.Context(), s.Timing.AckWait+s.Timing.Heartbeat) {
		t.Fatal(t.Context().Err())
	}
	// Nobody took the job over: the record is still this holder's, so its word counts.
	if _, err := l.Commit(t.Context(), success()); err != nil {
		t.Fatalf("Commit: got %v, want none", err)
	}
	s.result(id, job.Succeeded)
	s.nothing(s.Join(t, "w2"), s.Timing.AckWait)
}

func endsOnce(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	s.commit(l)
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Failed, Reason: job.ReasonExit}); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("second Commit: got %v, want ErrLeaseLost", err)
	}
	if err := l.Requeue(t.Context(), job.ClassJob, 0, job.Failure{}); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("Requeue after Commit: got %v, want ErrLeaseLost", err)
	}
	// A heartbeat that crosses with the commit must not have its holder drop everything.
	if err := l.Extend(t.Context()); err == nil || errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("Extend after Commit: got %v, want an error that is not ErrLeaseLost", err)
	}
	s.result(id, job.Succeeded)
}

func firstCommit(t *testing.T, s *suite) {
	w1 := s.Join(t, "w1")
	id := s.submit()
	old := s.next(w1)
	s.Kill("w1")
	l := s.next(s.Join(t, "w2"))
	results := make(chan error, 2)
	for _, one := range []job.Lease{old, l} {
		go func() { _, err := one.Commit(t.Context(), success()); results <- err }()
	}
	won := 0
	for range 2 {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, job.ErrLeaseLost):
			t.Errorf("Commit: got %v, want ErrLeaseLost", err)
		}
	}
	if won != 1 {
		t.Errorf("commits that won: got %d, want 1", won)
	}
	if r := s.result(id, job.Succeeded); r.Fence != l.Delivery().Fence {
		t.Errorf("result's fence: got %d, want %d", r.Fence, l.Delivery().Fence)
	}
}
