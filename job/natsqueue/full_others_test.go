package natsqueue_test

import (
	"context"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// A job that is given back waits for room as a commit does, and is charged for what its attempt was.
func TestGiveBackWaitsForRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		giveBack func(context.Context, job.Lease) error
		want     job.Counts
	}{
		"requeue": {func(ctx context.Context, l job.Lease) error { return l.Requeue(ctx, job.ClassInfra, 0, job.Failure{}) }, job.Counts{Infra: 1}},
		"release": {func(ctx context.Context, l job.Lease) error { return l.Release(ctx) }, job.Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSmall(t, func(c *natsqueue.Config) { c.Timing = patient })
			id := b.submit(makeJob())
			w := b.join(t, "w1")
			l := b.mustNext(w)
			empty := b.fill()
			held := &holder{lease: l, timing: b.cfg.Timing}
			held.start(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- tt.giveBack(t.Context(), l) }()
			select {
			case err := <-ended:
				t.Errorf("it returned %v, want it to wait", err)
			case <-time.After(b.bound(2 * time.Second)):
			}
			empty()
			if err := <-ended; err != nil {
				t.Errorf("got %v once there is room", err)
			}
			held.stop()
			if d := b.mustNext(w).Delivery(); d.ID != id || d.Attempt != 2 || d.Counts != tt.want {
				t.Errorf("delivery: got %+v, want the second attempt, charged %+v", d, tt.want)
			}
		})
	}
}

// Dead letters that fill their stream keep a further one waiting, with a result that can be read. Whoever drops one makes
// room for it, also while the store is full.
func TestDroppingLettersMakesRoom(t *testing.T) {
	t.Parallel()
	b := setupSmall(t)
	w := b.join(t, "w1")
	var ids []job.ID
	for range 3 {
		ids = append(ids, b.submit(fat(800<<10, false)))
		l := b.mustNext(w)
		if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	if got := b.stored("DEAD", b.cfg.Prefix+".X.>"); len(got) != 2 {
		t.Fatalf("dead letters: got %d, want the two that have room", len(got))
	}
	if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 2 {
		t.Errorf("results: got %v, want none before its letter", got)
	}
	if r, err := b.conn.Client().Result(t.Context(), ids[2]); err != nil || r.Reason != job.ReasonInfraBudget {
		t.Errorf("Result of the third: got %+v, %v; want it from the record", r, err)
	}
	empty := b.fill()
	if err := b.conn.Client().DropDead(t.Context(), ids[0]); err != nil {
		t.Fatalf("DropDead on a full store: %v", err)
	}
	empty()
	b.settles(w, "the third letter and its result are kept", func() bool {
		return b.stored("DEAD", b.cfg.Prefix+".X.>")[b.cfg.Prefix+".X.default."+string(ids[2])+".1"] == 1 && len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 3
	})
}

// Events never take more than their limit, and never keep an attempt from telling more. On a full store they are lost, which
// is told, as are results at their limit: the oldest go, and their records still say how the jobs ended.
func TestFullEventsDropTheOldest(t *testing.T) {
	t.Parallel()
	b := setupSmall(t, func(c *natsqueue.Config) { c.Timing, c.ResultsBytes = patient, 2<<20 })
	w := b.join(t, "w1")
	var first job.ID
	for i := range 6 {
		id := b.submit(makeJob())
		if i == 0 {
			first = id
		}
		l := b.mustNext(w)
		for range 4 {
			if err := l.Emit(t.Context(), []job.Event{{Kind: job.EventOutput, Data: make([]byte, 150<<10)}}); err != nil {
				t.Fatalf("Emit: %v", err)
			}
		}
		if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Failed, Reason: job.ReasonExit, Steps: []job.StepResult{{Output: job.Output{Head: string(make([]byte, 80<<10))}}}}); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	for _, u := range must(b.conn.StoreUse(t.Context()))(t) {
		if u.Bytes > u.MaxBytes {
			t.Errorf("%s, want it within its limit", u)
		}
	}
	if r, err := b.conn.Client().Result(t.Context(), first); err != nil || r.Outcome != job.Failed || r.Attempt != 1 {
		t.Errorf("Result of the first: got %+v, %v; want how it ended, from the record", r, err)
	}
	b.submit(makeJob())
	l := b.mustNext(w)
	empty := b.fill()
	wantFull(t, l.Emit(t.Context(), []job.Event{{Kind: job.EventOutput, Data: []byte("x")}}), "-EVENTS", "insufficient resources")
	empty()
	b.commit(l)
}

// must returns what a call returned, and fails the test if that is an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A worker leaves a result alone that another living one, with which it shares the folder, still tries to commit.
func TestOutboxLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()
	b, dir := setupSmall(t, func(c *natsqueue.Config) { c.Timing = patient }), t.TempDir()
	id := b.submit(makeJob())
	l := b.mustNext(b.joinKeeping(t, "w1", dir))
	other := b.joinKeeping(t, "w2", dir)
	empty := b.fill()
	committed := make(chan error, 1)
	go func() {
		_, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded})
		committed <- err
	}()
	eventually.True(t, b.bound(20*time.Second), "the result is on disk", func() bool { return len(b.files(dir)) == 1 })
	eventually.True(t, b.bound(20*time.Second), "the other worker sees it", func() bool {
		other.ReplayAll(t.Context())
		return other.Outbox().Waiting == 1
	})
	empty()
	if left := other.ReplayAll(t.Context()); left != 1 && len(b.files(dir)) > 0 {
		t.Errorf("left by the other worker: got %d, want the one of the living", left)
	}
	if err := <-committed; err != nil {
		t.Errorf("Commit: %v", err)
	}
	b.wantOne(id, 1, dir)
	if u := other.Outbox(); u.Committed != 0 || u.Late != 0 {
		t.Errorf("the other worker's outbox: got %+v, want nothing done", u)
	}
}
