package jobtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway/job"
)

var submitTests = map[string]func(*testing.T, *suite){
	"submitting twice runs once":       submitTwice,
	"a done job is not run again":      submitDone,
	"not_before is never early":        notBefore,
	"high first, low not starved":      priorities,
	"Next ends with its context":       nextEnds,
	"two workers share the jobs":       twoWorkers,
	"one Next holds one job":           oneInFlight,
	"Submit refuses what is no id":     submitBadID,
	"Submit refuses an odd priority":   submitBadPriority,
	"an id is one job's":               submitOther,
	"an id is one job's: scheduled":    submitOtherScheduled,
	"a delivery says what was claimed": delivery,
}

func submitTwice(t *testing.T, s *suite) {
	j := s.job()
	for i, want := range []error{nil, job.ErrExists, job.ErrExists} {
		if err := s.Client.Submit(t.Context(), j); !errors.Is(err, want) {
			t.Fatalf("Submit %d: got %v, want %v", i+1, err, want)
		}
	}
	w := s.Join(t, "w1")
	l := s.next(w)
	if err := s.Client.Submit(t.Context(), j); !errors.Is(err, job.ErrExists) {
		t.Errorf("Submit of a running job: got %v, want ErrExists", err)
	}
	s.commit(l)
	s.nothing(w, s.Timing.AckWait/2)
	s.result(j.ID, job.Succeeded)
}

func submitDone(t *testing.T, s *suite) {
	j, w := s.job(), s.Join(t, "w1")
	if err := s.Client.Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	first := s.commit(s.next(w))
	if err := s.Client.Submit(t.Context(), j); !errors.Is(err, job.ErrExists) {
		t.Fatalf("Submit of a done job: got %v, want ErrExists", err)
	}
	s.nothing(w, s.Timing.AckWait/2)
	if r := s.result(j.ID, job.Succeeded); r.Fence != first.Fence {
		t.Errorf("result's fence: got %d, want %d as before", r.Fence, first.Fence)
	}
}

// submitOther: an id that was used is never taken for another job's, wherever the first one stands.
func submitOther(t *testing.T, s *suite) {
	j, w := s.job(), s.Join(t, "w1")
	if err := s.Client.Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	s.refuses("of a queued job", j)
	l := s.next(w)
	s.refuses("of a running job", j)
	s.commit(l)
	s.refuses("of a done job", j)
	s.nothing(w, s.Timing.AckWait/2)
	s.result(j.ID, job.Succeeded)
}

// submitOtherScheduled: neither does the other job overtake one that waits for its time.
func submitOtherScheduled(t *testing.T, s *suite) {
	j := s.job()
	j.NotBefore = time.Now().Add(s.bound(time.Minute))
	if err := s.Client.Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	s.refuses("of a scheduled job", j)
	now := *j
	now.NotBefore = time.Time{}
	if err := s.Client.Submit(t.Context(), &now); !errors.Is(err, job.ErrExists) {
		t.Errorf("Submit of a scheduled job for now: got %v, want ErrExists", err)
	}
	if st := s.state(j.ID).State; st != job.StateScheduled {
		t.Errorf("state: got %s, want %s as before", st, job.StateScheduled)
	}
}

// refuses submits others under the id of j. Each differs from j in one field.
func (s *suite) refuses(when string, j *job.Job) {
	s.t.Helper()
	for field, edit := range map[string]func(*job.Job){
		"steps":    func(o *job.Job) { o.Steps = []job.Step{{Run: "echo other"}} },
		"priority": func(o *job.Job) { o.Priority = job.PriorityHigh },
		"name":     func(o *job.Job) { o.Name, o.NotBefore = "other", time.Now().Add(time.Hour) },
	} {
		o := *j
		edit(&o)
		err := s.Client.Submit(s.t.Context(), &o)
		var other *job.OtherJobError
		if !errors.As(err, &other) || !slices.Equal(other.Fields, []string{field}) {
			s.t.Errorf("Submit of another job under the id %s: got %v, want ErrOtherJob that names %s", when, err, field)
		}
	}
}

func notBefore(t *testing.T, s *suite) {
	w := s.Join(t, "w1")
	due := time.Now().Add(s.bound(1500 * time.Millisecond))
	id := s.submit(func(j *job.Job) { j.NotBefore = due })
	s.delayed(s.state(id).State, due)
	l := s.next(w)
	if now := time.Now(); now.Before(due) {
		t.Errorf("started %s early", due.Sub(now))
	}
	if d := l.Delivery(); d.ID != id || d.EligibleAt.Before(due.Add(-time.Millisecond)) {
		t.Errorf("delivery: got job %s eligible at %s, want %s at %s", d.ID, d.EligibleAt, id, due)
	}
	s.commit(l)
}

func priorities(t *testing.T, s *suite) {
	prio := map[job.ID]job.Priority{}
	for _, p := range []job.Priority{job.PriorityLow, job.PriorityNormal, job.PriorityHigh} {
		for range 16 {
			prio[s.submit(func(j *job.Job) { j.Priority = p })] = p
		}
	}
	w := s.Join(t, "w1")
	seen := map[job.Priority]int{}
	for range 24 {
		l := s.next(w)
		seen[prio[l.Delivery().ID]]++
		s.commit(l)
	}
	if seen[job.PriorityHigh] < 12 || seen[job.PriorityNormal] <= seen[job.PriorityLow] || seen[job.PriorityLow] == 0 {
		t.Errorf("of the first 24 jobs: got %v, want most high, then normal, and some low", seen)
	}
}

func nextEnds(t *testing.T, s *suite) {
	w := s.Join(t, "w1")
	cause := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	began := time.Now()
	if _, err := w.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("Next: got %v, want the context's cause", err)
	}
	if took := time.Since(began); took > s.bound(3*time.Second) {
		t.Errorf("Next ended after %s, want at once", took)
	}
	// A job that comes now is not lost to the open request of this worker.
	other := s.Join(t, "w2")
	began = time.Now()
	id := s.submit()
	if l := s.next(other); l.Delivery().ID != id || l.Delivery().Counts != (job.Counts{}) {
		t.Errorf("delivery: got %+v, want job %s at no cost", l.Delivery(), id)
	} else {
		s.commit(l)
	}
	if took := time.Since(began); took > s.Timing.AckWait {
		t.Errorf("the job came after %s, want well before AckWait", took)
	}
}

func twoWorkers(t *testing.T, s *suite) {
	const jobs = 20
	for range jobs {
		s.submit()
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[job.ID]int{}
	for _, name := range []string{"w1", "w2"} {
		w := s.Join(t, name)
		for range jobs / 2 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), s.bound(patience))
				defer cancel()
				l, err := w.Next(ctx)
				if err != nil {
					t.Errorf("Next: %v", err)
					return
				}
				mu.Lock()
				seen[l.Delivery().ID]++
				mu.Unlock()
				if _, err := l.Commit(ctx, success()); err != nil {
					t.Errorf("Commit: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != jobs {
		t.Errorf("jobs seen: got %d, want %d, each once: %v", len(seen), jobs, seen)
	}
}

func oneInFlight(t *testing.T, s *suite) {
	for range 4 {
		s.submit()
	}
	l := s.next(s.Join(t, "w1"))
	stop := s.hold(l)
	running := 0
	for st, err := range s.Client.List(t.Context(), job.ListQuery{}) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if st.State == job.StateRunning {
			running++
		}
	}
	if running != 1 {
		t.Errorf("running after one Next: got %d jobs, want 1", running)
	}
	// The other three are there for others, at once.
	other := s.Join(t, "w2")
	for range 3 {
		s.commit(s.next(other))
	}
	stop()
	s.commit(l)
}

// submitBadPriority: no worker asks for such jobs, so an accepted one would wait for ever.
func submitBadPriority(t *testing.T, s *suite) {
	j := s.job(func(j *job.Job) { j.Priority = "urgent" })
	if err := s.Client.Submit(t.Context(), j); err == nil || errors.Is(err, job.ErrUnavailable) {
		t.Errorf("Submit with priority %s: got %v, want it refused", j.Priority, err)
	}
	if _, err := s.Client.Status(t.Context(), j.ID); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("Status of it: got %v, want ErrNotFound", err)
	}
}

func submitBadID(t *testing.T, s *suite) {
	for _, id := range []job.ID{"", "x", "01ARZ3NDEKTSV4RRFFQ69G5FA*"} {
		if err := s.Client.Submit(t.Context(), s.job(func(j *job.Job) { j.ID = id })); err == nil {
			t.Errorf("Submit with the id %q: got no error, want one", id)
		}
	}
}

func delivery(t *testing.T, s *suite) {
	before := time.Now().Add(-time.Second)
	j := s.job()
	if err := s.Client.Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	l := s.next(s.Join(t, "w1"))
	d := l.Delivery()
	if d.ID != j.ID || d.Queue != job.DefaultQueue || d.Generation != 1 || d.Attempt != 1 || d.Fence == 0 || d.Worker != "w1" {
		t.Errorf("delivery: got %+v", d)
	}
	if d.SubmittedAt.Before(before) || d.SubmittedAt.After(time.Now()) || d.EligibleAt.Before(d.SubmittedAt) {
		t.Errorf("times: got submitted %s, eligible %s", d.SubmittedAt, d.EligibleAt)
	}
	got, err := job.Decode(d.Spec)
	if err != nil || got.ID != j.ID {
		t.Errorf("spec: got %v, %v; want job %s", got, err, j.ID)
	}
	s.commit(l)
	r := s.result(j.ID, job.Succeeded)
	if r.Generation != 1 || r.Queue != d.Queue || r.Attempt != 1 || r.Fence != d.Fence || r.Worker != "w1" || !r.SubmittedAt.Equal(d.SubmittedAt) {
		t.Errorf("result: got %+v, want the delivery's fields filled in", r)
	}
}
