package jobtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/job"
)

// Config says how a Queue behaves. The zero value has production clocks.
type Config struct {
	// Timing holds the clocks. Default job.DefaultTiming.
	Timing job.Timing
	// CrashBudget is how many deaths of a worker a job survives. Default 3; a negative number means 0.
	CrashBudget int
	// MaxJobs bounds the jobs that wait or run. Zero: no bound.
	MaxJobs int
}

// Queue is a queue in memory. It is a job.Client; Consumer makes its workers. It
// is safe for concurrent use, starts no goroutine, and knows no clock but that of
// package time.
type Queue struct {
	cfg Config

	mu      sync.Mutex
	changed chan struct{} // closed at each change, then replaced
	jobs    map[job.ID]*entry
	order   uint64
	workers map[string]*Consumer
}

var _ job.Client = (*Queue)(nil)

// entry is one job: its record, its token, its events.
type entry struct {
	status    job.Status
	priority  job.Priority
	spec      []byte
	notBefore time.Time // of the job, or of a retry
	cancel    job.CancelMode
	lease     *Lease // of the running claim
	token     bool   // it is waiting, or held
	visible   time.Time
	order     uint64
	result    *job.Result
	results   int // how many were published in this generation: must never be more than one
	events    []job.Event
	evicted   int // events before these
	letter    *job.DeadLetter
}

// NewQueue makes an empty queue.
func NewQueue(cfg Config) *Queue {
	if cfg.Timing == (job.Timing{}) {
		cfg.Timing = job.DefaultTiming()
	}
	if cfg.CrashBudget == 0 {
		cfg.CrashBudget = 3
	}
	cfg.CrashBudget = max(cfg.CrashBudget, 0)
	return &Queue{cfg: cfg, changed: make(chan struct{}), jobs: map[job.ID]*entry{}, workers: map[string]*Consumer{}}
}

// announce wakes every waiting call. The caller holds mu.
func (q *Queue) announce() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Submit puts j into its queue.
func (q *Queue) Submit(ctx context.Context, j *job.Job) error {
	if ctx.Err() != nil {
		return fmt.Errorf("submit: %w: %w", job.ErrUnavailable, context.Cause(ctx))
	}
	if id, err := job.ParseID(string(j.ID)); err != nil || id != j.ID {
		return fmt.Errorf("submit: id %.40q: not a ULID in upper case, as job.NewID makes one", j.ID)
	}
	if p := cmp.Or(j.Priority, job.PriorityNormal); !slices.Contains(job.Priorities(), p) {
		return fmt.Errorf("submit: priority %.40q: want high, normal or low", p)
	}
	spec, err := job.Encode(j)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.jobs[j.ID]; e != nil {
		err := job.NewFingerprint(e.spec).Compare(j.ID, job.NewFingerprint(spec))
		return fmt.Errorf("submit: %w", cmp.Or(err, job.ErrExists))
	}
	if q.cfg.MaxJobs > 0 && q.waitingOrRunning() >= q.cfg.MaxJobs {
		return fmt.Errorf("submit: %w", job.ErrFull)
	}
	now := time.Now()
	q.order++
	q.jobs[j.ID] = &entry{
		spec: spec, priority: cmp.Or(j.Priority, job.PriorityNormal), token: true, visible: j.NotBefore, notBefore: j.NotBefore, order: q.order,
		status: job.Status{
			ID: j.ID, Name: j.Name, Queue: cmp.Or(j.Queue, job.DefaultQueue), Labels: j.Labels,
			State: job.StateQueued, Generation: 1, SubmittedAt: now,
		},
	}
	q.announce()
	return nil
}

func (q *Queue) waitingOrRunning() int {
	n := 0
	for _, e := range q.jobs {
		if !e.status.State.Final() {
			n++
		}
	}
	return n
}

// current is the status of e at this moment.
func (e *entry) current() job.Status {
	s := e.status
	s.Cancel = e.cancel != 0
	s.EligibleAt = e.eligible()
	if s.State == job.StateQueued && e.notBefore.After(time.Now()) {
		s.State = job.StateScheduled
	}
	return s
}

func (e *entry) eligible() time.Time {
	if e.notBefore.After(e.status.SubmittedAt) {
		return e.notBefore
	}
	return e.status.SubmittedAt
}

// Cancel asks for the end of a job.
func (q *Queue) Cancel(_ context.Context, id job.ID, mode job.CancelMode) (job.State, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.jobs[id]
	if e == nil {
		return "", fmt.Errorf("cancel job %s: %w", id, job.ErrNotFound)
	}
	met := e.current().State
	switch {
	case met.Final():
	case met == job.StateRunning:
		e.cancel = max(e.cancel, mode)
		e.lease.deliver(e.cancel)
	default:
		e.cancel = mode
		q.decide(e, &job.Result{Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user while it waited"})
	}
	return met, nil
}

// decide makes e final. The caller holds mu.
func (q *Queue) decide(e *entry, r *job.Result) *job.Result {
	s := &e.status
	r.JobID, r.Generation, r.Queue, r.SubmittedAt = s.ID, s.Generation, s.Queue, s.SubmittedAt
	r.Attempt, r.Fence, r.Worker = s.Attempt, s.Fence, s.Worker
	r.Version, r.Name, r.Labels = job.Version, cmp.Or(r.Name, s.Name), s.Labels
	if r.FinishedAt.IsZero() {
		r.FinishedAt = time.Now()
	}
	seq := uint64(1)
	if n := len(e.events); n > 0 && e.events[n-1].Generation == r.Generation && e.events[n-1].Attempt == r.Attempt {
		seq = e.events[n-1].Seq + 1
	}
	s.State, s.Reason, s.FinishedAt = job.FinalState(r.Outcome), r.Reason, r.FinishedAt
	e.token, e.lease, e.result = false, nil, r
	e.results++
	e.events = append(e.events, job.Event{
		JobID: s.ID, Generation: s.Generation, Attempt: s.Attempt, Fence: s.Fence, Seq: seq, Time: r.FinishedAt,
		Kind: job.EventFinished, Outcome: r.Outcome, Reason: r.Reason, Text: r.Message,
	})
	if r.Reason.Dead() {
		e.letter = &job.DeadLetter{ID: s.ID, Queue: s.Queue, Generation: s.Generation, At: r.FinishedAt, Spec: e.spec, Status: e.current(), Result: r}
	}
	q.announce()
	stands := *r
	return &stands
}

// Inject puts bytes that may be no job into a queue, as a foreign producer would.
func (q *Queue) Inject(id job.ID, spec []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var b struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(spec, &b)
	q.order++
	q.jobs[id] = &entry{
		spec: spec, priority: job.PriorityNormal, token: true, order: q.order,
		status: job.Status{ID: id, Name: b.Name, Queue: job.DefaultQueue, State: job.StateQueued, Generation: 1, SubmittedAt: time.Now()},
	}
	q.announce()
}

var errKilled = errors.New("the worker was killed")
