package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"slipway/job"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// bundle is a worker and all that surrounds it.
type bundle struct {
	t     *testing.T
	cfg   Config
	queue *fakeQueue
	boxes *fakeProvider
	store *wsynctest.Store
	seen  *observed

	attempt int // of the next job; 0: the first

	worker *Worker
	stop   context.CancelFunc
	ended  chan error
}

// scenario runs fn in a bubble of fake time. What fn started is stopped at its
// end, and then nothing may be left.
func scenario(t *testing.T, fn func(*bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, queue: newFakeQueue(), boxes: newFakeProvider(t), store: wsynctest.NewStore(), seen: newObserved()}
		b.cfg = Config{
			Name: "w1", Queue: b.queue, Provider: b.boxes, Store: b.store, Prefix: "p/", Slots: 2,
			Logger: zap.NewNop(), Observer: b.seen,
		}
		fn(b)
		if b.stop != nil {
			b.halt()
		}
		b.boxes.empty()
	})
}

// start runs the worker.
func (b *bundle) start() {
	b.t.Helper()
	w, err := New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	b.worker, b.stop, b.ended = w, cancel, make(chan error, 1)
	go func() { b.ended <- w.Run(ctx) }()
}

// halt stops the worker and waits for it.
func (b *bundle) halt() {
	b.t.Helper()
	b.stop()
	if err := <-b.ended; err != nil {
		b.t.Errorf("Run: got %v, want nil", err)
	}
	b.stop = nil
}

// put hands a job to the worker.
func (b *bundle) put(j *job.Job) *fakeLease {
	b.t.Helper()
	if j.Image == "" {
		j.Image = "docker.io/library/alpine"
	}
	spec, err := job.Encode(j)
	if err != nil {
		b.t.Fatal(err)
	}
	l := newFakeLease(b.t, spec)
	l.delivery.Attempt = max(b.attempt, 1)
	b.queue.leases <- l
	return l
}

// do runs one job to its end, and waits until its box is gone.
func (b *bundle) do(j *job.Job) *fakeLease {
	b.t.Helper()
	if b.stop == nil {
		b.start()
	}
	l := b.put(j)
	b.wait(l)
	return l
}

// wait waits until the lease is ended and its slot is free.
func (b *bundle) wait(l *fakeLease) {
	b.t.Helper()
	select {
	case <-l.ended:
	case <-time.After(48 * time.Hour):
		b.t.Fatal("the job never ended")
	}
	synctest.Wait()
}

// want checks how a job ended, and returns its result.
func (b *bundle) want(l *fakeLease, outcome job.Outcome, reason job.Reason) *job.Result {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.result == nil {
		b.t.Fatalf("got no result (failure %+v, released %t), want %s/%s", l.failure, l.released, outcome, reason)
	}
	if l.result.Outcome != outcome || l.result.Reason != reason {
		b.t.Fatalf("got %s/%s (%s), want %s/%s", l.result.Outcome, l.result.Reason, l.result.Message, outcome, reason)
	}
	return l.result
}

// wantRetry checks that a job went back.
func (b *bundle) wantRetry(l *fakeLease, class job.Class, reason job.Reason) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		b.t.Fatalf("got result %+v, released %t; want a retry for %s", l.result, l.released, reason)
	}
	if l.class != class || l.failure.Reason != reason {
		b.t.Fatalf("got class %s, reason %s (%s); want %s, %s", l.class, l.failure.Reason, l.failure.Message, class, reason)
	}
}

// object puts an object into the store.
func (b *bundle) object(key, content string) {
	b.t.Helper()
	_, err := b.store.Put(b.t.Context(), key, strings.NewReader(content), int64(len(content)), wsync.PutOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

func run(script string) job.Step { return job.Step{Run: script} }

func always(script string) job.Step { return job.Step{Run: script, If: job.IfAlways} }

func jobOf(s ...job.Step) *job.Job { return &job.Job{Steps: s} }

func statuses(r *job.Result) []job.StepStatus {
	var out []job.StepStatus
	for _, s := range r.Steps {
		out = append(out, s.Status)
	}
	return out
}

func ptr[T any](v T) *T { return &v }

// pass lets d of the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
