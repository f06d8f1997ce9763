package natsqueue_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// heard are the errors that a queue's background reported.
type heard struct {
	mu   sync.Mutex
	errs []string
}

func (h *heard) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err.Error())
}

func (h *heard) of(part string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.errs {
		if strings.Contains(e, part) {
			return e
		}
	}
	return ""
}

// joinKeeping is join with an outbox.
func (b *bundle) joinKeeping(t testing.TB, name, dir string) *natsqueue.Consumer {
	t.Helper()
	return b.joinAs(t, natsqueue.ConsumerConfig{Worker: name, StateDir: dir})
}

// files lists what an outbox has on disk.
func (b *bundle) files(dir string) []string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "outbox", b.cfg.Prefix, "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// cutOff has a commit of l find no room until it has kept the result, and then be cut off, as by the end of its process.
func (b *bundle) cutOff(l job.Lease, dir string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := l.Commit(ctx, &job.Result{Outcome: job.Succeeded, Message: "of the first attempt"})
		ended <- err
	}()
	eventually.True(b.t, b.bound(20*time.Second), "the result is on disk", func() bool { return len(b.files(dir)) == 1 })
	cancel()
	if err := <-ended; err == nil {
		b.t.Fatal("the commit succeeded, want it cut off")
	}
}

// keepAndKill submits a job to a full queue, of which the worker w1 has kept the result in its outbox when it is killed. empty
// makes room.
func (b *bundle) keepAndKill(dir string) (id job.ID, w *natsqueue.Consumer, empty func()) {
	b.t.Helper()
	id = b.submit(makeJob())
	w = b.joinKeeping(b.t, "w1", dir)
	l := b.mustNext(w)
	empty = b.fill()
	b.cutOff(l, dir)
	w.Kill()
	return id, w, empty
}

// wantOne wants the job to have one result, of attempt, and nothing in the outbox.
func (b *bundle) wantOne(id job.ID, attempt int, dir string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), b.bound(30*time.Second))
	defer cancel()
	r, err := b.conn.Client().Result(ctx, id)
	if err != nil || r.Outcome != job.Succeeded || r.Attempt != attempt {
		b.t.Fatalf("Result: got %+v, %v; want succeeded at attempt %d", r, err, attempt)
	}
	eventually.True(b.t, b.bound(30*time.Second), "the outbox is empty, and there is one result", func() bool {
		return len(b.files(dir)) == 0 && len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1
	})
}

// The worker is killed while its finished result finds no room. The process after it commits the result, and the job does
// not run again.
func TestOutboxOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	var log heard
	b, dir := setupSmall(t, func(c *natsqueue.Config) { c.OnError = log.note }), t.TempDir()
	id, _, empty := b.keepAndKill(dir)
	<-time.After(b.cfg.Timing.AckWait) // the token is due for others, who can't claim
	empty()
	again := b.joinKeeping(t, "w1", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	claimed := make(chan job.Lease, 1)
	go func() {
		if l, err := again.Next(ctx); err == nil {
			claimed <- l
		}
	}()
	b.wantOne(id, 1, dir)
	eventually.True(t, b.bound(20*time.Second), "no token is left", func() bool { return len(b.stored("JOBS", b.cfg.Prefix+".J.>")) == 0 })
	select {
	case l := <-claimed:
		t.Errorf("the job runs again: %+v", l.Delivery())
	default:
	}
	if u := again.Outbox(); u.Waiting != 0 || u.Late != 0 || u.Lost != 0 {
		t.Errorf("outbox: got %+v, want nothing waiting, late or lost", u)
	}
	t.Log(log.of("outbox"))
}

// Another attempt was faster: its result stands, and the kept one is dropped with a word.
func TestOutboxComesTooLate(t *testing.T) {
	t.Parallel()
	var log heard
	b, dir := setupSmall(t, func(c *natsqueue.Config) { c.OnError = log.note }), t.TempDir()
	id, _, empty := b.keepAndKill(dir)
	empty()
	l := b.mustNext(b.join(t, "w2"))
	again := b.joinKeeping(t, "w1", dir)
	eventually.True(t, b.bound(30*time.Second), "the kept result is dropped", func() bool { return again.Outbox().Late == 1 })
	b.commit(l)
	b.wantOne(id, 2, dir)
	if got := log.of("is dropped"); !strings.Contains(got, string(id)) {
		t.Errorf("got %q, want the job that a kept result was dropped of", got)
	} else {
		t.Log(got)
	}
}

// The server is away for longer than a lease while a result is to be committed. The worker, which lives, commits it once
// the server is back, before anybody may take the job over.
func TestOutboxAfterAnOutage(t *testing.T) {
	t.Parallel()
	r := startRestartable(t)
	b, dir := setupOn(t, r), t.TempDir()
	id := b.submit(makeJob())
	w := b.joinKeeping(t, "w1", dir)
	l := b.mustNext(w)
	r.srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), b.cfg.Timing.Lease) // as a worker gives up
	defer cancel()
	if _, err := l.Commit(ctx, &job.Result{Outcome: job.Succeeded}); !errors.Is(err, job.ErrUnavailable) {
		t.Fatalf("Commit without a server: got %v, want ErrUnavailable", err)
	}
	if got := b.files(dir); len(got) != 1 {
		t.Fatalf("kept: got %v, want one result", got)
	}
	r.start()
	b.wantOne(id, 1, dir)
	if u := w.Outbox(); u.Committed != 1 {
		t.Errorf("outbox: got %+v, want one committed", u)
	}
}

// A claim of a job whose result this worker keeps commits the result, whether or not a replay came first: nothing runs, and
// nothing is charged.
func TestClaimFindsAKeptResult(t *testing.T) {
	t.Parallel()
	b, dir := setupSmall(t), t.TempDir()
	id, w, empty := b.keepAndKill(dir) // no replay comes
	defer empty()
	v, err := b.conn.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	next, decides, err := w.Judge(t.Context(), id, v)
	if err != nil || !decides {
		t.Fatalf("got %t, %v; want a claim that decides", decides, err)
	}
	if r, err := next.Result(); err != nil || r.Attempt != 1 || r.Message != "of the first attempt" || next.State() != job.StateDone {
		t.Errorf("got %+v, %v; want the result of the first attempt", r, err)
	}
}

// A cancel that was written while the result waited decides, as it does for a commit.
func TestCancelBeatsAKeptResult(t *testing.T) {
	t.Parallel()
	b, dir := setupSmall(t), t.TempDir()
	id, _, empty := b.keepAndKill(dir)
	empty()
	if _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil {
		t.Fatal(err)
	}
	b.joinKeeping(t, "w1", dir)
	ctx, cancel := context.WithTimeout(t.Context(), b.bound(30*time.Second))
	defer cancel()
	if r, err := b.conn.Client().Result(ctx, id); err != nil || r.Outcome != job.Canceled || r.Attempt != 1 {
		t.Errorf("Result: got %+v, %v; want canceled", r, err)
	}
}

// A folder that can't be used ends the start, and names the setting.
func TestOutboxThatCantBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := b.conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1", StateDir: file})
	contains(t, err, "setting StateDir", file)
}
