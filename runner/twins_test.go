package runner

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/container/mock"
	"slipway/job"
	"slipway/job/jobtest"
	"slipway/sync/wsynctest"
)

// twins is the whole of a small installation in memory: a queue, an engine and a
// store that keep to their contracts, and workers on them.
type twins struct {
	t     *testing.T
	queue *jobtest.Queue
	boxes *mock.Provider
	store *wsynctest.Store
}

// inMemory runs fn in a bubble of fake time.
func inMemory(t *testing.T, fn func(*twins)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fn(&twins{t: t, queue: jobtest.NewQueue(jobtest.Config{}), boxes: mock.New(t), store: wsynctest.NewStore()})
	})
}

// join starts a worker. The function it returns stops it and waits.
func (w *twins) join(name string, edits ...func(*Config)) (stop func()) {
	w.t.Helper()
	cfg := Config{Name: name, Queue: w.queue.Consumer(name), Provider: w.boxes, Store: w.store, Slots: 2}
	for _, edit := range edits {
		edit(&cfg)
	}
	worker, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("worker %s: %v", name, err)
		}
	}
}

// submit puts a job of steps into the queue.
func (w *twins) submit(j *job.Job) job.ID {
	w.t.Helper()
	j.ID, j.Image = job.NewID(), "docker.io/library/alpine"
	if err := w.queue.Submit(w.t.Context(), j); err != nil {
		w.t.Fatal(err)
	}
	return j.ID
}

// want waits for the result of a job, and checks it.
func (w *twins) want(id job.ID, outcome job.Outcome, reason job.Reason) *job.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 48*time.Hour)
	defer cancel()
	r, err := w.queue.Result(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Outcome != outcome || r.Reason != reason {
		w.t.Fatalf("got %s/%s (%s), want %s/%s", r.Outcome, r.Reason, r.Message, outcome, reason)
	}
	return r
}

func TestTwins_RetriesUntilItWorks(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1")()
		w.boxes.On("flaky", mock.Reply{Code: 1}, mock.Reply{LoseBox: true}, mock.Reply{Stdout: "third\n"})
		j := jobOf(run("flaky"))
		j.Retry = job.Retry{Attempts: 2, Backoff: job.Duration(time.Minute)}
		r := w.want(w.submit(j), job.Succeeded, "")
		if r.Attempt != 3 || r.Steps[0].Output.Head != "third\n" || r.Worker != "w1" {
			t.Errorf("got attempt %d by %s, output %q", r.Attempt, r.Worker, r.Steps[0].Output.Head)
		}
	})
}

func TestTwins_InfraBudgetEndsAsDeadLetter(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1", func(c *Config) { c.InfraBudget = 2 })()
		w.boxes.Fail(mock.Fault{At: mock.OnPrepare, Err: container.ErrEngineUnavailable, Times: 3})
		id := w.submit(jobOf(run("true")))
		w.boxes.On("true", mock.Reply{})
		if r := w.want(id, job.Errored, job.ReasonInfraBudget); r.Attempt != 3 {
			t.Errorf("got %d attempts, want 3", r.Attempt)
		}
		if err := w.queue.RequeueDead(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.want(id, job.Succeeded, "")
	})
}

func TestTwins_Cancel(t *testing.T) {
	for name, mode := range map[string]job.CancelMode{"cancel": job.Cancel, "abort": job.Abort} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(w *twins) {
				defer w.join("w1")()
				w.boxes.On("slow", mock.Reply{Hang: true})
				w.boxes.On("after", mock.Reply{})
				id := w.submit(jobOf(run("slow"), always("after")))
				pass(time.Minute)
				if _, err := w.queue.Cancel(t.Context(), id, mode); err != nil {
					t.Fatal(err)
				}
				w.want(id, job.Canceled, job.ReasonCanceledByUser)
				if got, want := slices.Contains(w.boxes.Commands(), "after"), mode == job.Cancel; got != want {
					t.Errorf("the always-step ran: %t, want %t", got, want)
				}
			})
		})
	}
}

// TestTwins_SoftStop: a job that its worker gives back is done by another one, and pays nothing.
func TestTwins_SoftStop(t *testing.T) {
	inMemory(t, func(w *twins) {
		stop := w.join("w1", func(c *Config) { c.SoftStop = time.Minute })
		w.boxes.On("slow", mock.Reply{Hang: true}, mock.Reply{Stdout: "done\n"})
		id := w.submit(jobOf(run("slow")))
		pass(time.Minute)
		defer w.join("w2")()
		stop()
		r := w.want(id, job.Succeeded, "")
		s, err := w.queue.Status(t.Context(), id)
		if err != nil || r.Worker != "w2" || r.Attempt != 2 || s.Counts != (job.Counts{}) {
			t.Errorf("got attempt %d by %s, counts %+v, %v; want attempt 2 by w2 at no cost", r.Attempt, r.Worker, s.Counts, err)
		}
	})
}

// TestTwins_LeaseLost: the first worker ends its box and says nothing; there is one result.
func TestTwins_LeaseLost(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1")()
		w.boxes.On("slow", mock.Reply{Hang: true}, mock.Reply{Stdout: "done\n"})
		id := w.submit(jobOf(run("slow")))
		pass(time.Minute)
		w.queue.LoseLease(id)
		r := w.want(id, job.Succeeded, "")
		if r.Attempt != 2 || w.queue.Published(id) != 1 {
			t.Errorf("got attempt %d, %d results; want attempt 2 and one result", r.Attempt, w.queue.Published(id))
		}
	})
}

// TestTwins_OneWorkspace: jobs on one workspace see each other's files, whoever runs them.
func TestTwins_OneWorkspace(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1")()
		defer w.join("w2")()
		w.boxes.On("make", mock.Reply{Files: map[string]string{"out": "1"}})
		ws := &job.Workspace{Prefix: "acme/parser"}
		w.want(w.submit(&job.Job{Workspace: ws, Steps: []job.Step{run("make")}}), job.Succeeded, "")
		r := w.want(w.submit(&job.Job{Workspace: ws, Steps: []job.Step{{Read: "out"}}}), job.Succeeded, "")
		if r.Steps[0].Output.Head != "1" {
			t.Errorf("read %q, want what the first job wrote", r.Steps[0].Output.Head)
		}
	})
}

func TestTwins_NotAJob(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1")()
		id := job.NewID()
		w.queue.Inject(id, []byte(`{"image": 7}`))
		w.want(id, job.Errored, job.ReasonSpecInvalid)
	})
}

// TestTwins_ManyJobs: two workers, many jobs, faults all over: each job has one result, and no box is left.
func TestTwins_ManyJobs(t *testing.T) {
	inMemory(t, func(w *twins) {
		defer w.join("w1")()
		defer w.join("w2")()
		w.boxes.On("work", mock.Reply{After: time.Second}, mock.Reply{LoseBox: true}, mock.Reply{After: time.Minute, Stdout: "x"})
		w.boxes.Fail(mock.Fault{At: mock.OnStart, Err: container.ErrBoxLost, Skip: 5, Times: 5})
		w.boxes.Fail(mock.Fault{At: mock.OnRemove, Err: container.ErrEngineUnavailable, Skip: 3, Times: 4})
		var ids []job.ID
		for range 40 {
			ids = append(ids, w.submit(jobOf(run("work"), always("work"))))
		}
		for _, id := range ids {
			w.want(id, job.Succeeded, "")
			if n := w.queue.Published(id); n != 1 {
				t.Errorf("job %s has %d results", id, n)
			}
		}
	})
}
