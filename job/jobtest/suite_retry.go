package jobtest

import (
	"testing"
	"time"

	"slipway/job"
)

var retryTests = map[string]func(*testing.T, *suite){
	"each class has its counter":      classCounters,
	"a short delay is honored":        shortDelay,
	"a long delay is honored":         longDelay,
	"release is at once and for free": release,
	"no attempt is charged to none":   badClass,
}

func classCounters(t *testing.T, s *suite) {
	id := s.submit()
	w := s.Join(t, "w1")
	why := job.Failure{Outcome: job.Failed, Reason: job.ReasonExit, Message: "exit code 3"}
	want := job.Counts{}
	for i, class := range []job.Class{job.ClassJob, job.ClassInfra, job.ClassShutdown, job.ClassJob, job.ClassInfra, job.ClassInfra} {
		l := s.next(w)
		if d := l.Delivery(); d.Counts != want || d.Attempt != i+1 {
			t.Fatalf("delivery: got attempt %d with %+v, want %d with %+v", d.Attempt, d.Counts, i+1, want)
		}
		if err := l.Requeue(t.Context(), class, 0, why); err != nil {
			t.Fatalf("Requeue: %v", err)
		}
		switch class {
		case job.ClassJob:
			want.Job++
		case job.ClassInfra:
			want.Infra++
		}
	}
	st := s.status(id, job.StateQueued)
	if st.Counts != want || st.LastFailure == nil || *st.LastFailure != why {
		t.Errorf("status: got %+v with last failure %+v, want %+v with %+v", st.Counts, st.LastFailure, want, why)
	}
	s.commit(s.next(w))
}

func shortDelay(t *testing.T, s *suite) { delayed(t, s, s.Timing.AckWait/2) }

func longDelay(t *testing.T, s *suite) { delayed(t, s, s.Timing.AckWait*3/2) }

func delayed(t *testing.T, s *suite, delay time.Duration) {
	id := s.submit()
	w := s.Join(t, "w1")
	l := s.next(w)
	due := time.Now().Add(delay)
	if err := l.Requeue(t.Context(), job.ClassInfra, delay, job.Failure{Outcome: job.Errored, Reason: job.ReasonImagePull}); err != nil {
		t.Fatalf("Requeue: %v", err)
	}
	st := s.state(id)
	s.delayed(st.State, due)
	if st.EligibleAt.Before(due.Add(-time.Millisecond)) {
		t.Errorf("eligible at %s, want %s", st.EligibleAt, due)
	}
	l = s.next(w)
	if now := time.Now(); now.Before(due) {
		t.Errorf("came %s early", due.Sub(now))
	} else if late := now.Sub(due); late > s.bound(3*time.Second) {
		t.Errorf("came %s late", late)
	}
	if d := l.Delivery(); d.Attempt != 2 || d.EligibleAt.Before(due.Add(-time.Millisecond)) {
		t.Errorf("delivery: got attempt %d eligible at %s, want 2 at %s", d.Attempt, d.EligibleAt, due)
	}
	s.commit(l)
	s.nothing(w, s.Timing.AckWait/2)
}

func release(t *testing.T, s *suite) {
	s.submit()
	l, other := s.next(s.Join(t, "w1")), s.Join(t, "w2")
	if err := l.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
	began := time.Now()
	l = s.next(other)
	if took := time.Since(began); took > s.Timing.AckWait {
		t.Errorf("came again after %s, want at once", took)
	}
	if d := l.Delivery(); d.Counts != (job.Counts{}) {
		t.Errorf("counts: got %+v, want none", d.Counts)
	}
	s.commit(l)
}

func badClass(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	for _, class := range []job.Class{job.ClassNone, job.ClassCrash, ""} {
		if err := l.Requeue(t.Context(), class, 0, job.Failure{}); err == nil {
			t.Errorf("Requeue for class %q: got no error, want one", class)
		}
	}
	s.commit(l) // nothing of that ended the lease
	s.result(id, job.Succeeded)
}
