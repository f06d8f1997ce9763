package natsqueue_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/test/eventually"
)

// A second token of a running job is adopted by its owner, left alone by others
// while the owner lives, and dropped once the job is decided.
func TestDuplicateToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := makeJob()
	id := b.submit(j)
	w1, w2 := b.join(t, "w1"), b.join(t, "w2")
	l := b.mustNext(w1)
	spec, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	held := &holder{lease: l, timing: b.cfg.Timing}
	held.start(t.Context())
	b.publish(b.token(id), spec)
	b.nothing(w2, b.cfg.Timing.AckWait/4)
	b.nothing(w1, b.cfg.Timing.AckWait/4)
	if held.stop() {
		t.Fatal("the lease was lost")
	}
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("Extend: %v", err)
	}
	b.commit(l)
	b.nothing(w2, b.cfg.Timing.AckWait)
	b.settles(w1, "no token is left", func() bool { return len(b.stored("JOBS", b.token(id))) == 0 })
	if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 1 {
		t.Errorf("results: got %v, want one", got)
	}
}

// A worker that dies right after its commit leaves the token. The worker that gets the token
// publishes the decided result.
func TestSettledByAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := makeJob()
	id := b.submit(j)
	w := b.join(t, "w1")
	want := b.commit(b.mustNext(w))
	s := b.stream("RESULTS")
	if err := s.DeleteMsg(t.Context(), s.CachedInfo().State.LastSeq); err != nil {
		t.Fatal(err)
	}
	spec, _ := job.Encode(j)
	b.publish(b.token(id), spec)
	b.settles(w, "the result is there again, and no token", func() bool {
		return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 && len(b.stored("JOBS", b.token(id))) == 0
	})
	msg, err := s.GetLastMsgForSubject(t.Context(), b.cfg.Prefix+".R.default."+string(id)+".1")
	if err != nil {
		t.Fatalf("the result is not there again: %v", err)
	}
	var got job.Result
	if err := json.Unmarshal(msg.Data, &got); err != nil || got.Fence != want.Fence || !got.FinishedAt.Equal(want.FinishedAt) {
		t.Errorf("result: got %+v, %v; want the one that was committed, %+v", got, err, want)
	}
}

func TestForeignTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")

	// No id: the queue itself answers, for there can be no attempt.
	b.publish(b.token("not-an-id"), []byte("{}"))
	b.settles(w, "a token without an id has its result, and is gone", func() bool {
		return len(b.stored("RESULTS", b.cfg.Prefix+".R.default.not-an-id.1")) == 1 && len(b.stored("JOBS", b.cfg.Prefix+".J.>")) == 0
	})

	// An id, but no job: it is delivered, for the worker to refuse.
	id := job.NewID()
	b.publish(b.token(id), []byte("no json"))
	l := b.mustNext(w)
	if d := l.Delivery(); d.ID != id || string(d.Spec) != "no json" || d.SubmittedAt.IsZero() {
		t.Errorf("delivery: got %+v", d)
	}
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonSpecInvalid}); err != nil {
		t.Errorf("Commit: %v", err)
	}

	// Not yet due, but in its lane.
	j := makeJob()
	j.NotBefore = time.Now().Add(700 * time.Millisecond)
	spec, _ := job.Encode(j)
	b.publish(b.token(j.ID), spec)
	l = b.mustNext(w)
	if early := time.Until(j.NotBefore); early > 0 {
		t.Errorf("started %s early", early)
	}
	b.commit(l)
}

func TestFullAndTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *natsqueue.Config) { c.MaxJobs = 2 })
	b.submit(makeJob())
	b.submit(makeJob())
	err := b.conn.Client().Submit(t.Context(), makeJob())
	if !errors.Is(err, job.ErrFull) {
		t.Errorf("Submit to a full queue: got %v, want ErrFull", err)
	}
	j := makeJob()
	j.Steps[0].Run = strings.Repeat("x", 1<<20-8<<10)
	contains(t, b.conn.Client().Submit(t.Context(), j), "max_payload")
	// Once a job is done there is room for another.
	w := b.join(t, "w1")
	b.commit(b.mustNext(w))
	b.submit(makeJob())
}

// A result that is too large loses output, evenly and counted, and nothing else.
func TestLargeResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	r := &job.Result{Outcome: job.Succeeded}
	for i := range 60 {
		r.Steps = append(r.Steps, job.StepResult{Index: i, Name: "step", Status: job.StepSucceeded, Output: job.Output{
			Head: strings.Repeat("é", 10_000), Tail: strings.Repeat("\x1b", 10_000), Elided: 5, Bytes: 30_005,
		}})
	}
	if _, err := l.Commit(t.Context(), r); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	got, err := b.conn.Client().Result(t.Context(), id)
	if err != nil || len(got.Steps) != 60 {
		t.Fatalf("Result: got %d steps, %v; want 60", len(got.Steps), err)
	}
	for _, s := range got.Steps {
		o := s.Output
		if n := int64(len(o.Head)+len(o.Tail)) + o.Elided; n != o.Bytes || o.Bytes != 30_005 || len(o.Head) == 0 {
			t.Fatalf("output: head %d + elided %d + tail %d of %d bytes, want them to add up", len(o.Head), o.Elided, len(o.Tail), o.Bytes)
		}
	}
	if len(r.Steps[0].Output.Head) != 20_000 {
		t.Error("the caller's result was changed")
	}
}

// A server that takes larger messages than others does not make larger results: a reader may have to pass them on.
func TestLargeResultOnARoomyServer(t *testing.T) {
	t.Parallel()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true, MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	b := setup(t, unhurried, func(c *natsqueue.Config) { c.InProcess = srv })
	id := b.submit(makeJob())
	r := &job.Result{Outcome: job.Succeeded}
	for i := range 100 {
		r.Steps = append(r.Steps, job.StepResult{Index: i, Status: job.StepSucceeded, Output: job.Output{Head: strings.Repeat("x", 20_000), Bytes: 20_000}})
	}
	if _, err := b.mustNext(b.join(t, "w1")).Commit(t.Context(), r); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	stands, err := b.conn.Client().Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(stands)
	if size := len(data); err != nil || size > 1<<20 || size < 1<<18 {
		t.Errorf("result: got %d bytes, %v, want much of a MiB, and no more", size, err)
	}
}

func TestDepthAndWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *natsqueue.Config) { c.Timing = patient })
	for range 3 {
		b.submit(makeJob())
	}
	w := b.join(t, "w1")
	l := b.mustNext(w)
	held := &holder{lease: l, timing: b.cfg.Timing}
	held.start(t.Context())
	eventually.True(t, b.bound(5*time.Second), "two wait and one is in flight", func() bool {
		depth, err := b.conn.Depth(t.Context())
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		if len(depth) != 3 {
			t.Fatalf("Depth: got %d lanes, want 3", len(depth))
		}
		d := depth[1]
		return d.Priority == job.PriorityNormal && d.Waiting == 2 && d.InFlight == 1 && d.OldestAge > 0 && d.OldestAge < time.Minute
	})
	eventually.True(t, b.bound(5*time.Second), "the worker says what it runs", func() bool {
		all, err := b.conn.Workers(t.Context())
		if err != nil {
			t.Fatalf("Workers: %v", err)
		}
		d := l.Delivery()
		return len(all) == 1 && all[0].Name == "w1" && len(all[0].Running) == 1 && all[0].Running[0] == natsqueue.RunningJob{ID: d.ID, Fence: d.Fence}
	})
	if held.stop() {
		t.Fatal("the lease was lost")
	}
	b.commit(l)
	if err := w.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if all, err := b.conn.Workers(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("workers after Close: got %v, %v; want none", all, err)
	}
}

func TestWorkerNameIsUnique(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	_, err := b.conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
	contains(t, err, "in use by another process", "Worker")
	// That of a dead one is waited out.
	w.Kill()
	again, err := b.conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
	if err != nil {
		t.Fatalf("Consumer after the death of its namesake: %v", err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A busy server may be late to remove the entry of a dead worker. Its next process must not wait for that.
func TestEntryThatOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entry, err := json.Marshal(natsqueue.WorkerInfo{Name: "w1", Boot: "of another process"})
	if err != nil {
		t.Fatal(err)
	}
	b.publish("$KV."+b.cfg.Prefix+"-workers.w1", entry) // without a lifetime: it never expires
	b.join(t, "w1")
}

// A greedy client must not be able to hoard jobs.
func TestOneMessagePerPull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 5 {
		b.submit(makeJob())
	}
	_, js := b.raw()
	cons, err := js.Consumer(t.Context(), b.cfg.Prefix+"-JOBS", "default_normal")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := cons.Fetch(5, jetstream.FetchMaxWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range batch.Messages() {
		n++
	}
	if n > 1 {
		t.Errorf("one pull got %d messages, want at most 1", n)
	}
}
