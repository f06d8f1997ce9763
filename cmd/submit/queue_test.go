package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/cmd/internal/cli"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// TestWrongPrefix: a queue that nobody set up is a wrong setting, and is said at once.
func TestWrongPrefix(t *testing.T) {
	b := setup(t)
	b.withQueue()
	file := b.file("image: x\nsteps: [{run: 'true'}]\n")
	for _, args := range [][]string{{"create", file}, {"run", file}, {"status", string(job.NewID())}, {"logs", string(job.NewID())}, {"list"}} {
		began := time.Now()
		out, errOut, code := b.run(append([]string{"--nats-prefix", "other"}, args...)...)
		if code != 2 || !strings.Contains(errOut, "SLIPWAY_NATS_PREFIX, which is other") || !strings.Contains(errOut, "worker serve") {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want code 2 and the setting", args[0], code, out, errOut)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s, want it at once", args[0], took)
		}
	}
}

// TestSameID: the same job again does no harm; another job under its id is refused, and never shown the first one's result.
func TestSameID(t *testing.T) {
	b := setup(t)
	b.withQueue()
	const id = "01M8HE00000000000000000009"
	first, other := b.file("image: x\nsteps: [{run: echo A}]\n"), b.file("name: b\nimage: x\nsteps: [{run: echo B}]\n")
	for _, args := range [][]string{
		{"create", "--id", id, first}, {"create", "--id", id, first}, {"create", "--id", id, "--not-before", "2h", first},
	} {
		if out, errOut, code := b.run(args...); code != 0 || strings.TrimSpace(out) != id {
			t.Fatalf("%v: code %d, stdout %q, stderr %q; want 0 and the id", args, code, out, errOut)
		}
	}
	for _, cmd := range []string{"create", "run"} {
		out, errOut, code := b.run(cmd, "--id", id, other)
		if code != 2 || out != "" || !strings.Contains(errOut, "differs in name, steps") || !strings.Contains(errOut, "submit status "+id) {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want 2, the fields and what to do", cmd, code, out, errOut)
		}
	}
}

// TestFull: a queue without room is no queue that does not answer: the job was not accepted, and the advice names what is full.
func TestFull(t *testing.T) {
	b := setup(t)
	b.withQueue(func(c *natsqueue.Config) { c.MaxJobs, c.MaxScheduledBytes = 1, 1<<20 })
	big := b.file("image: x\nenv: {A: '" + strings.Repeat("x", 30<<10) + "'}\nsteps: [{run: 'true'}]\n")
	for _, tc := range []struct {
		args    []string
		want    []string
		atMost  int
		accepts int
	}{
		{[]string{"create", big}, []string{"slipway-JOBS has ", " and 1 of 1 jobs", "nats.max_jobs", "submit list --state queued", "--set-limits"}, 2, 1},
		{[]string{"create", "--not-before", "2h", big}, []string{"slipway-SCHED has ", " of 1MiB", "nats.max_scheduled_bytes", "submit list --state scheduled"}, 40, 33},
	} {
		accepted := 0
		for range tc.atMost {
			out, errOut, code := b.run(tc.args...)
			if code == 0 {
				accepted++
				continue
			}
			for _, want := range append(tc.want, "queue is full", "the job was not accepted") {
				if code != 3 || out != "" || !strings.Contains(errOut, want) || strings.Contains(errOut, "unknown") {
					t.Errorf("%v: code %d, stdout %q, stderr %q; want 3, and %q", tc.args[:2], code, out, errOut, want)
				}
			}
			t.Log(errOut)
			break
		}
		if accepted != tc.accepts {
			t.Errorf("%v: %d jobs were accepted, want %d", tc.args[:2], accepted, tc.accepts)
		}
	}
}

// TestUnserved: a mistyped queue is said at once, and the one that was meant.
func TestUnserved(t *testing.T) {
	b := setup(t)
	conn := b.withQueue()
	file := b.file("image: x\nsteps: [{run: 'true'}]\n")
	if out, errOut, code := b.run("create", file); code != 0 || len(strings.TrimSpace(out)) != 26 || !strings.Contains(errOut, "no worker is alive") {
		t.Errorf("without workers: code %d, stdout %q, stderr %q; want the id, and a remark", code, out, errOut)
	}
	consumer, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1", Queues: []string{"default", "nightly"}})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close(context.WithoutCancel(t.Context()))
	for queue, want := range map[string]string{
		"default": "", "nightly": "", "nightl": `(served: default, nightly): did you mean "nightly"?`, "zzz": "(served: default, nightly)\n",
	} {
		_, errOut, code := b.run("create", "--queue", queue, file)
		if code != 0 || (want == "") != (errOut == "") || !strings.Contains(errOut, want) {
			t.Errorf("queue %s: code %d, stderr %q, want 0 and %q", queue, code, errOut, want)
		}
	}
}

// TestList_Unreadable: a job that can't be read is a line beside the list.
func TestList_Unreadable(t *testing.T) {
	b := setup(t)
	b.withQueue()
	id, _, _ := b.run("create", b.file("image: x\nsteps: [{run: 'true'}]\n"))
	b.wrapQueue(func(c job.Client) job.Client { return unreadableQueue{c} })
	for _, args := range [][]string{{"list"}, {"list", "-o", "json"}} {
		out, errOut, code := b.run(args...)
		if code != 0 || !strings.Contains(out, strings.TrimSpace(id)) || !strings.Contains(errOut, "unreadable: odd") {
			t.Errorf("%v: code %d, stdout %q, stderr %q; want 0, the job, and a line about the other", args, code, out, errOut)
		}
	}
}

// unreadableQueue has a job of which it can read the id alone.
type unreadableQueue struct{ job.Client }

func (q unreadableQueue) List(ctx context.Context, query job.ListQuery) iter.Seq2[job.Status, error] {
	return func(yield func(job.Status, error) bool) {
		if !yield(job.Status{ID: job.NewID()}, fmt.Errorf("%w: odd", job.ErrUnreadable)) {
			return
		}
		q.Client.List(ctx, query)(yield)
	}
}

// deniedQueue lets nobody submit.
type deniedQueue struct{ job.Client }

func (deniedQueue) Submit(context.Context, *job.Job) error {
	return fmt.Errorf("submit: %w", &natsqueue.PermissionError{Op: "publish", Subject: "slipway.J.default.normal.X"})
}

// TestSubmitDenied: without the right to submit nothing arrived, which is said, and which right is missing.
func TestSubmitDenied(t *testing.T) {
	b := setup(t)
	b.withQueue()
	b.wrapQueue(func(c job.Client) job.Client { return deniedQueue{c} })
	_, errOut, code := b.run("create", b.file("image: x\nsteps: [{run: 'true'}]\n"))
	if code != 3 || strings.Contains(errOut, "unknown") || !strings.Contains(errOut, "not accepted") || !strings.Contains(errOut, "slipway.J.default") {
		t.Errorf("code %d, stderr %q; want 3, that the job was not accepted, and the right", code, errOut)
	}
}

// goneQueue accepts jobs, and is removed then.
type goneQueue struct {
	job.Client
	err error
}

func (q goneQueue) Result(context.Context, job.ID) (*job.Result, error) { return nil, q.err }

func (q goneQueue) Follow(context.Context, job.ID, bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) { yield(job.Event{}, q.err) }
}

// TestQueueRemoved: what the caller asked for made sense when it was accepted.
func TestQueueRemoved(t *testing.T) {
	b := setup(t)
	b.withQueue()
	for _, gone := range []error{job.ErrNotSetUp, job.ErrNotFound} { // the second: and made anew
		b.wrapQueue(func(c job.Client) job.Client { return goneQueue{c, gone} })
		_, errOut, code := b.run("run", b.file("image: x\nsteps: [{run: 'true'}]\n"))
		if code != 3 || !strings.Contains(errOut, gone.Error()) {
			t.Errorf("%v: code %d, stderr %q; want 3 and why", gone, code, errOut)
		}
	}
}

// waitingQueue holds one job, which no worker takes for long.
type waitingQueue struct{ job.Client }

func (waitingQueue) Status(_ context.Context, id job.ID) (job.Status, error) {
	return job.Status{ID: id, Queue: "nightly", State: job.StateQueued}, nil
}

func (waitingQueue) Follow(ctx context.Context, _ job.ID, _ bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		<-time.After(30 * time.Second)
		if yield(job.Event{Kind: job.EventOutput, Stream: "stdout", Data: []byte("printed\n"), Seq: 1}, nil) {
			<-ctx.Done()
		}
	}
}

func (waitingQueue) Result(_ context.Context, id job.ID) (*job.Result, error) {
	<-time.After(time.Minute)
	return &job.Result{JobID: id, Outcome: job.Succeeded}, nil
}

// TestResult_Wait says what it waits for, and shows nothing of the job but its result.
func TestResult_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.app.connect = func(context.Context, cli.NATS) (job.Client, func(), error) { return waitingQueue{}, func() {}, nil }
		out, errOut, code := b.run("result", "--wait", string(job.NewID()))
		if code != 0 || !strings.Contains(errOut, "waiting for a worker") || !strings.Contains(errOut, "nightly") || strings.Contains(out+errOut, "printed") || !strings.Contains(out, "succeeded") {
			t.Errorf("code %d, stdout %q, stderr %q; want 0, the hint, and the result alone", code, out, errOut)
		}
	})
}

// TestUnknownJob: its id stands where it helps, and how that can be.
func TestUnknownJob(t *testing.T) {
	b := setup(t)
	b.withQueue()
	id := string(job.NewID())
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"status", id}, "submit list"},
		{[]string{"logs", id}, "submit list"},
		{[]string{"result", id}, "submit list"},
		{[]string{"result", "--wait", id}, "submit list"},
		{[]string{"cancel", id}, "submit list"},
		{[]string{"dead", "drop", id}, "submit dead list"},
		{[]string{"dead", "requeue", id}, "submit dead list"},
	} {
		_, errOut, code := b.run(tc.args...)
		first, _, _ := strings.Cut(errOut, "\n")
		if code != 2 || !strings.Contains(errOut, tc.want) || strings.Count(first, "submit") > 1 || strings.Count(first, "result of") > 1 {
			t.Errorf("%v: code %d, stderr %q; want 2, no word twice, and %q", tc.args, code, errOut, tc.want)
		}
	}
}

// TestKeptDays: the queue keeps results for as long as people are told.
func TestKeptDays(t *testing.T) {
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	conn, err := natsqueue.Connect(t.Context(), natsqueue.Config{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	results, err := js.Stream(t.Context(), "slipway-RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	if got := results.CachedInfo().Config.MaxAge; got != keptDays*24*time.Hour {
		t.Errorf("results are kept for %s, and people are told of %d days", got, keptDays)
	}
}

func TestVersion(t *testing.T) {
	b := setup(t)
	want, _, _ := b.run("version")
	if got, errOut, code := b.run("--version"); code != 0 || got != want || !strings.HasPrefix(got, "submit ") {
		t.Errorf("--version: code %d, %q, %q; want %q, as version prints", code, got, errOut, want)
	}
}
