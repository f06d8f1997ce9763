package natsqueue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/test/eventually"
)

// smallStore is the store of a server that a test fills.
const smallStore = 48 << 20

// setupSmall makes a queue on a server of its own with a small store, of which the queue's limits leave a little to others.
func setupSmall(t *testing.T, edits ...func(*natsqueue.Config)) *bundle {
	t.Helper()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), MaxStore: smallStore})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return setup(t, append([]func(*natsqueue.Config){func(c *natsqueue.Config) {
		c.URL = srv.ClientURL()
		c.MaxJobBytes, c.MaxScheduledBytes, c.EventsBytes = 8<<20, 4<<20, 2<<20
		c.ResultsBytes, c.DeadBytes, c.RecordsBytes = 8<<20, 2<<20, 8<<20
	}}, edits...)...)
}

// fill takes the rest of the server's store, as a stream without a limit does, and returns what gives it back.
func (b *bundle) fill() (empty func()) {
	b.t.Helper()
	_, js := b.raw()
	s, err := js.CreateOrUpdateStream(b.t.Context(), jetstream.StreamConfig{Name: "foreign", Subjects: []string{"foreign"}})
	if err != nil {
		b.t.Fatal(err)
	}
	for n := 512 << 10; n >= 512; {
		_, err := js.Publish(b.t.Context(), "foreign", make([]byte, n))
		var api *jetstream.APIError
		switch {
		case errors.As(err, &api) && api.ErrorCode == 10023:
			return func() {
				b.t.Helper()
				if err := s.Purge(b.t.Context()); err != nil {
					b.t.Fatal(err)
				}
			}
		case err != nil:
			b.t.Fatalf("fill the store: %v", err)
		}
	}
	return nil
}

// fat makes a job whose spec has about n bytes.
func fat(n int, later bool) *job.Job {
	j := makeJob()
	j.Env = map[string]string{}
	for i := 0; n > 0; i++ {
		part := min(n, 30<<10)
		j.Env["V"+strings.Repeat("X", i+1)] = strings.Repeat("x", part)
		n -= part
	}
	if later {
		j.NotBefore = time.Now().Add(time.Hour)
	}
	return j
}

// submitUntilFull submits jobs until one is refused, and returns the refusal.
func (b *bundle) submitUntilFull(make func() *job.Job) (accepted []job.ID, refusal error) {
	b.t.Helper()
	for range 1000 {
		j := make()
		if err := b.conn.Client().Submit(b.t.Context(), j); err != nil {
			return accepted, err
		}
		accepted = append(accepted, j.ID)
	}
	b.t.Fatal("a thousand jobs were accepted, want a full queue before")
	return nil, nil
}

// wantFull wants a typed error that names a stream and says how much it has.
func wantFull(t *testing.T, err error, stream string, parts ...string) {
	t.Helper()
	full, ok := errors.AsType[*natsqueue.FullError](err)
	switch {
	case !ok || !errors.Is(err, job.ErrFull):
		t.Fatalf("got %v, want a FullError", err)
	case errors.Is(err, job.ErrUnavailable):
		t.Errorf("got %v, want no ErrUnavailable: it is known that nothing was stored", err)
	case !strings.HasSuffix(full.Stream, stream):
		t.Errorf("got stream %s, want %s", full.Stream, stream)
	}
	contains(t, err, parts...)
}

// Jobs that wait, now and for later, fill their streams, and take nothing of what the others need: claim, events, commit, result,
// requeue with a long delay, cancel, dead letter.
func TestFullQueueLeavesRoomForWork(t *testing.T) {
	t.Parallel()
	b := setupSmall(t, func(c *natsqueue.Config) { c.CrashBudget, c.Timing = -1, patient })
	w := b.join(t, "w1")
	first := b.submit(makeJob())
	running := b.mustNext(w)
	later, err := b.submitUntilFull(func() *job.Job { return fat(100<<10, true) })
	wantFull(t, err, "-SCHED", "of 4MiB")
	waiting, err := b.submitUntilFull(func() *job.Job { return fat(100<<10, false) })
	wantFull(t, err, "-JOBS", "of 8MiB", "maximum bytes exceeded")

	if _, err := running.Commit(t.Context(), &job.Result{Outcome: job.Failed, Reason: job.ReasonExit, Message: strings.Repeat("m", 500<<10)}); err != nil {
		t.Errorf("Commit: %v", err)
	}
	if r, err := b.conn.Client().Result(t.Context(), first); err != nil || r.Outcome != job.Failed || r.Attempt != 1 {
		t.Errorf("Result: got %+v, %v; want failed at the first attempt", r, err)
	}
	l := b.mustNext(w)
	if err := l.Emit(t.Context(), []job.Event{{Kind: job.EventOutput, Data: make([]byte, 64<<10)}}); err != nil {
		t.Errorf("Emit: %v", err)
	}
	if err := l.Requeue(t.Context(), job.ClassInfra, time.Hour, job.Failure{}); err != nil {
		t.Errorf("Requeue: %v", err)
	}
	if got := b.stored("SCHED", b.cfg.Prefix+".D.wait."+string(l.Delivery().ID)+".>"); len(got) != 1 {
		t.Errorf("messages of the retry in SCHED: got %v, want one", got)
	}
	for _, id := range []job.ID{later[0], waiting[len(waiting)-1], l.Delivery().ID} {
		if _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil {
			t.Errorf("Cancel: %v", err)
		}
	}
	dead := b.mustNext(w)
	if _, err := dead.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
		t.Errorf("Commit of a dead job: %v", err)
	}
	if got := b.stored("DEAD", b.cfg.Prefix+".X.>"); len(got) != 1 {
		t.Errorf("dead letters: got %v, want one", got)
	}
}

// While the records have less than their reserve, new jobs are refused, and those that were accepted end.
func TestRecordsKeepAReserve(t *testing.T) {
	t.Parallel()
	b := setupSmall(t, func(c *natsqueue.Config) { c.Timing = patient })
	id := b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	_, js := b.raw()
	for i := range 13 { // foreign keys, since a thousand records take longer
		if _, err := js.Publish(t.Context(), "$KV."+b.cfg.Prefix+"-jobs.x"+string(rune('a'+i)), make([]byte, 500<<10)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	eventually.True(t, b.bound(20*time.Second), "a job is refused once the producer has looked", func() bool {
		err = b.conn.Client().Submit(t.Context(), makeJob())
		return err != nil
	})
	wantFull(t, err, "-jobs", "of 8MiB", "kept for jobs that were accepted already")
	b.commit(l)
	if r, err := b.conn.Client().Result(t.Context(), id); err != nil || r.Outcome != job.Succeeded {
		t.Errorf("Result: got %+v, %v; want succeeded", r, err)
	}
}

// A store that others filled: a commit waits for room as long as the lease is confirmed, and everything else says what is
// full. Then there is one result, of the one attempt.
func TestCommitWaitsForRoom(t *testing.T) {
	t.Parallel()
	var said atomic.Pointer[error]
	b := setupSmall(t, func(c *natsqueue.Config) {
		c.Timing = patient
		c.OnError = func(err error) {
			if strings.Contains(err.Error(), "waits for room") {
				said.Store(&err)
			}
		}
	})
	w := b.join(t, "w1")
	id, waits := b.submit(makeJob()), b.submit(makeJob())
	l := b.mustNext(w)
	empty := b.fill()

	held := &holder{lease: l, timing: b.cfg.Timing}
	held.start(t.Context())
	committed := make(chan error, 1)
	go func() {
		_, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded})
		committed <- err
	}()
	for name, call := range map[string]func() error{
		"Submit":        func() error { return b.conn.Client().Submit(t.Context(), makeJob()) },
		"Cancel":        func() error { _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); return err },
		"Cancel, waits": func() error { _, err := b.conn.Client().Cancel(t.Context(), waits, job.Cancel); return err },
	} {
		err := call()
		wantFull(t, err, "", "the NATS server's store", "-JOBS has ", "-RESULTS has ")
		t.Logf("%s: %s", name, hint.Text(err))
	}
	// A free slot claims nothing, and charges nothing for it.
	b.nothing(w, b.bound(time.Second))
	<-time.After(b.cfg.Timing.AckWait) // longer than any lease without a confirmation
	select {
	case err := <-committed:
		t.Fatalf("Commit returned %v, want it to wait", err)
	default:
	}
	empty()
	if err := <-committed; err != nil {
		t.Errorf("Commit: %v", err)
	}
	if held.stop() {
		t.Error("the lease was lost while the commit waited")
	}
	if err := said.Load(); err == nil {
		t.Error("nothing was said of a commit that waits")
	} else if !strings.Contains((*err).Error(), "-SCHED has") {
		t.Errorf("got %v, want it to name what fills the store", *err)
	}
	if r, err := b.conn.Client().Result(t.Context(), id); err != nil || r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("Result: got %+v, %v; want succeeded at the first attempt", r, err)
	}
	if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 1 {
		t.Errorf("results: got %v, want one", got)
	}
	d := b.mustNext(w).Delivery()
	if d.ID != waits || d.Attempt != 1 || d.Counts != (job.Counts{}) {
		t.Errorf("the other job: got %+v, want its first attempt, and nothing charged", d)
	}
}

// A commit whose context ends says that there was no room, and lets the lease go.
func TestCommitGivesUpWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := setupSmall(t, func(c *natsqueue.Config) {
		c.Timing = patient
		c.OnError = func(err error) {
			if strings.Contains(err.Error(), "waits for room") {
				cancel() // a time could end a request instead, and then nothing is known
			}
		}
	})
	b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	empty := b.fill()
	defer empty()
	_, err := l.Commit(ctx, &job.Result{Outcome: job.Succeeded})
	wantFull(t, err, "-jobs") // what fills the store is not asked any more
	if err := l.Release(t.Context()); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("Release after it: got %v, want ErrLeaseLost", err)
	}
}
