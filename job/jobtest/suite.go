package jobtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

// Harness is one queue under test, as the suite drives it.
type Harness struct {
	// Client of a fresh, empty queue.
	Client job.Client
	// Join makes a worker. Everything it leaves is cleaned up by the harness.
	Join func(t testing.TB, worker string) job.Consumer
	// Kill has a worker die without a word.
	Kill func(worker string)
	// Evict forgets all events of a job that are kept now.
	Evict func(id job.ID)
	// Timing is the queue's. AckWait should be a second or so.
	Timing job.Timing
	// CrashBudget is the queue's. Each death costs the suite an AckWait.
	CrashBudget int
	// Slack is by how much longer than on a quiet machine the queue takes at this moment. The suite stretches its own
	// bounds by it; a caller that sets it also lengthens Timing. Default 1.
	Slack float64
}

// Factory makes a fresh queue for one test.
type Factory func(t *testing.T) Harness

// Run checks that the queue of factory keeps to the contract of package job.
func Run(t *testing.T, factory Factory) {
	// Not by t.Parallel: that runs as many as there are processors, and these tests
	// wait for clocks most of the time.
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, part := range []map[string]func(*testing.T, *suite){
		submitTests, leaseTests, retryTests, cancelTests, deadTests, readTests,
	} {
		for name, test := range part {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				t.Run(name, func(t *testing.T) { test(t, &suite{t: t, Harness: factory(t)}) })
			})
		}
	}
	wg.Wait()
}

// atOnce is how many tests run side by side.
const atOnce = 16

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// suite is one test's bundle.
type suite struct {
	t *testing.T
	Harness
}

// job makes a valid job, changed by edits.
func (s *suite) job(edits ...func(*job.Job)) *job.Job {
	j := &job.Job{
		Version: job.Version, ID: job.NewID(), Name: "suite", Queue: job.DefaultQueue, Image: "busybox",
		Labels: map[string]string{"suite": s.t.Name()},
		Steps:  []job.Step{{Name: "one", Run: "true"}},
	}
	for _, edit := range edits {
		edit(j)
	}
	return j
}

// bound stretches d, which is generous on a quiet machine, to what this one can do.
func (s *suite) bound(d time.Duration) time.Duration {
	return time.Duration(max(1, s.Slack) * float64(d))
}

// submit submits a job and returns its id.
func (s *suite) submit(edits ...func(*job.Job)) job.ID {
	s.t.Helper()
	j := s.job(edits...)
	if err := s.Client.Submit(s.t.Context(), j); err != nil {
		s.t.Fatalf("Submit: %v", err)
	}
	return j.ID
}

// next takes the next job, which must come.
func (s *suite) next(c job.Consumer) job.Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.bound(patience))
	defer cancel()
	l, err := c.Next(ctx)
	if err != nil {
		s.t.Fatalf("Next: %v", err)
	}
	return l
}

// nothing checks that no job comes for a while.
func (s *suite) nothing(c job.Consumer, during time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), during)
	defer cancel()
	if l, err := c.Next(ctx); err == nil {
		s.t.Fatalf("Next gave job %s, attempt %d; want none within %s", l.Delivery().ID, l.Delivery().Attempt, during)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatalf("Next: got error %v, want the context's", err)
	}
}

// spare keeps a slot of c open, which may settle a job but must not be given one, until stop is called.
func (s *suite) spare(c job.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if l, err := c.Next(ctx); err == nil {
			s.t.Errorf("Next gave job %s, attempt %d; want none", l.Delivery().ID, l.Delivery().Attempt)
		} else if !errors.Is(err, context.Canceled) {
			s.t.Errorf("Next: got error %v, want the context's", err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func success() *job.Result {
	return &job.Result{Version: job.Version, Outcome: job.Succeeded, Steps: []job.StepResult{{Name: "one", Status: job.StepSucceeded}}}
}

// commit ends l with success.
func (s *suite) commit(l job.Lease) *job.Result {
	s.t.Helper()
	r, err := l.Commit(s.t.Context(), success())
	if err != nil {
		s.t.Fatalf("Commit: %v", err)
	}
	return r
}

// result waits for the result of id and checks its outcome.
func (s *suite) result(id job.ID, want job.Outcome) *job.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.bound(patience))
	defer cancel()
	r, err := s.Client.Result(ctx, id)
	if err != nil {
		s.t.Fatalf("Result of %s: %v", id, err)
	}
	if r.Outcome != want || r.JobID != id {
		s.t.Fatalf("result: got %s of job %s (%s), want %s of %s", r.Outcome, r.JobID, r.Message, want, id)
	}
	return r
}

// status reads a job's status and checks its state.
func (s *suite) status(id job.ID, want job.State) job.Status {
	s.t.Helper()
	st := s.state(id)
	if st.State != want || st.ID != id {
		s.t.Fatalf("status: got job %s %s, want %s %s", st.ID, st.State, id, want)
	}
	return st
}

// delayed checks the state of a job that waits until due: scheduled. A machine that is so slow that due has passed may also
// find it queued.
func (s *suite) delayed(got job.State, due time.Time) {
	s.t.Helper()
	if got != job.StateScheduled && (got != job.StateQueued || time.Now().Before(due)) {
		s.t.Fatalf("state: got %s, want scheduled until %s", got, due)
	}
}

// state is where a job stands.
func (s *suite) state(id job.ID) job.Status {
	s.t.Helper()
	st, err := s.Client.Status(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("Status: %v", err)
	}
	return st
}

// lost checks that err says that the lease is.
func (s *suite) lost(what string, err error) {
	s.t.Helper()
	if !errors.Is(err, job.ErrLeaseLost) {
		s.t.Errorf("%s of a lost lease: got %v, want ErrLeaseLost", what, err)
	}
}

// hold extends l until stop is called, which waits for the loop. A call that was not confirmed is repeated until a lease
// without a confirmation has passed, as the contract says.
func (s *suite) hold(l job.Lease) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		confirmed := time.Now()
		for pause.For(ctx, s.Timing.Heartbeat) {
			began := time.Now()
			err := l.Extend(ctx)
			if err == nil {
				confirmed = began
				continue
			}
			if ctx.Err() == nil && (errors.Is(err, job.ErrLeaseLost) || time.Since(confirmed) > s.Timing.Lease) {
				s.t.Errorf("Extend: %v", err)
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// mode waits for what a user asked of l.
func (s *suite) mode(l job.Lease, want job.CancelMode) {
	s.t.Helper()
	select {
	case got := <-l.Canceled():
		if got != want {
			s.t.Fatalf("Canceled: got mode %d, want %d", got, want)
		}
	case <-time.After(s.bound(patience)):
		s.t.Fatalf("Canceled: nothing came, want mode %d", want)
	}
}
