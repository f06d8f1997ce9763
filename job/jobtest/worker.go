package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"slipway/job"
)

// Consumer is one worker's side of a Queue.
type Consumer struct {
	q      *Queue
	worker string
	queues []string

	killed chan struct{}
	once   sync.Once

	turn   int
	faults faults
}

var _ job.Consumer = (*Consumer)(nil)

// Consumer makes a worker that serves the named queues, and all queues without a name.
// Making one again under a name stands for the worker's restart.
func (q *Queue) Consumer(worker string, queues ...string) *Consumer {
	c := &Consumer{q: q, worker: worker, queues: queues, killed: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers[worker] = c
	return c
}

// Kill has a worker die as by kill -9: it takes no job any more, and extends no
// lease. Its leases can still speak, as those of a zombie.
func (q *Queue) Kill(worker string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.workers[worker]; c != nil {
		c.once.Do(func() { close(c.killed) })
	}
}

// Next waits for a job and claims it.
func (c *Consumer) Next(ctx context.Context) (job.Lease, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		l, changed, due := c.try()
		if l != nil {
			return l, nil
		}
		if err := c.wait(ctx, changed, due); err != nil {
			return nil, err
		}
	}
}

func (c *Consumer) wait(ctx context.Context, changed <-chan struct{}, due time.Time) error {
	var timer <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-changed:
	case <-timer:
	case <-c.killed:
		return errKilled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// try claims a job that is there, or tells when to look again.
func (c *Consumer) try() (l *Lease, changed <-chan struct{}, due time.Time) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	select {
	case <-c.killed:
		return nil, c.q.changed, time.Time{}
	default:
	}
	for {
		e, next := c.pick()
		if e == nil {
			return nil, c.q.changed, next
		}
		if l := c.claim(e); l != nil {
			return l, nil, time.Time{}
		}
	}
}

// turns says which priority is asked first in each of twelve turns, so that no priority starves.
var turns = [12]job.Priority{3: job.PriorityNormal, 6: job.PriorityNormal, 9: job.PriorityNormal, 11: job.PriorityLow}

// pick finds the job whose turn it is, or the time when one comes due.
func (c *Consumer) pick() (*entry, time.Time) {
	now, first := time.Now(), cmp.Or(turns[c.turn%len(turns)], job.PriorityHigh)
	var best *entry
	var due time.Time
	for _, e := range c.q.jobs {
		if !e.token || !c.serves(e.status.Queue) {
			continue
		}
		if e.visible.After(now) {
			if due.IsZero() || e.visible.Before(due) {
				due = e.visible
			}
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(e.priority, first), rank(best.priority, first)), cmp.Compare(e.order, best.order)) < 0 {
			best = e
		}
	}
	if best != nil {
		c.turn++
	}
	return best, due
}

func (c *Consumer) serves(queue string) bool {
	for _, q := range c.queues {
		if q == queue {
			return true
		}
	}
	return len(c.queues) == 0
}

func rank(p, first job.Priority) int {
	switch p {
	case first:
		return 0
	case job.PriorityHigh:
		return 1
	case job.PriorityNormal:
		return 2
	}
	return 3
}

// claim makes the worker e's owner, unless that decides e: then it is nil.
func (c *Consumer) claim(e *entry) *Lease {
	s := &e.status
	if s.State == job.StateRunning {
		s.Counts.Crash++
		s.LastFailure = &job.Failure{Outcome: job.Errored, Reason: job.ReasonLeaseLost, Message: "worker " + s.Worker + " died"}
	}
	switch {
	case e.cancel != 0:
		c.q.decide(e, &job.Result{Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user before it ran again"})
		return nil
	case s.Counts.Crash > c.q.cfg.CrashBudget:
		s.Fence++
		c.q.decide(e, &job.Result{Outcome: job.Errored, Reason: job.ReasonCrashBudget, Message: fmt.Sprintf("%d workers died while they ran this job", s.Counts.Crash)})
		return nil
	}
	s.State, s.Worker, s.StartedAt = job.StateRunning, c.worker, time.Now()
	s.Fence++
	s.Attempt++
	e.visible = time.Now().Add(c.q.cfg.Timing.AckWait)
	e.lease = &Lease{
		c: c, canceled: make(chan job.CancelMode, int(job.Abort)),
		d: job.Delivery{
			ID: s.ID, Queue: s.Queue, Generation: s.Generation, Attempt: s.Attempt, Fence: s.Fence, Worker: c.worker,
			ClaimedAt: time.Now(), Spec: e.spec, SubmittedAt: s.SubmittedAt, EligibleAt: e.eligible(), Counts: s.Counts,
		},
	}
	c.q.announce()
	return e.lease
}
