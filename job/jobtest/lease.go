package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slipway/job"
)

// Lease is a claimed job of a Queue.
type Lease struct {
	c        *Consumer
	d        job.Delivery
	canceled chan job.CancelMode

	// under the queue's mu
	mode  job.CancelMode
	ended bool // by its holder
	lost  bool
	seq   uint64
}

var _ job.Lease = (*Lease)(nil)

var errEnded = errors.New("the lease was ended by its holder")

// faults are the errors that a test gives to a worker's leases. Each queue of errors is
// used up from its front; nil lets the call through.
type faults struct {
	extend, commit, emit []error
}

// FailExtend makes the next calls of Extend of this worker's leases return errs, one each.
func (c *Consumer) FailExtend(errs ...error) { c.fail(&c.faults.extend, errs) }

// FailCommit makes the next calls of Commit return errs, one each. Nothing is
// committed, and the lease is left to expire.
func (c *Consumer) FailCommit(errs ...error) { c.fail(&c.faults.commit, errs) }

// FailEmit makes the next calls of Emit return errs, one each.
func (c *Consumer) FailEmit(errs ...error) { c.fail(&c.faults.emit, errs) }

func (c *Consumer) fail(queue *[]error, errs []error) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	*queue = append(*queue, errs...)
}

// fault takes the front of a queue of errors. The caller holds mu.
func fault(queue *[]error) error {
	if len(*queue) == 0 {
		return nil
	}
	err := (*queue)[0]
	*queue = (*queue)[1:]
	return err
}

// LoseLease has the running job's lease expire at once: the job can be claimed by
// another worker, and once it is, the holder has lost it. It does nothing to a job that does not run.
func (q *Queue) LoseLease(id job.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.jobs[id]; e != nil && e.lease != nil {
		e.visible = time.Time{}
		e.status.Fence++ // no lease has this fence
		q.announce()
	}
}

// Delivery is the claimed job.
func (l *Lease) Delivery() job.Delivery { return l.d }

// Canceled delivers what users ask for.
func (l *Lease) Canceled() <-chan job.CancelMode { return l.canceled }

// deliver hands mode to the holder once. The caller holds the queue's mu.
func (l *Lease) deliver(mode job.CancelMode) {
	if l == nil || mode <= l.mode || mode > job.Abort {
		return
	}
	l.mode = mode
	select {
	case <-l.c.killed: // the push is lost; a zombie sees the cancel at its next Extend
		l.mode = 0
	default:
		l.canceled <- mode
	}
}

// own returns the entry if the lease stands. The caller holds mu.
func (l *Lease) own() (*entry, error) {
	e := l.c.q.jobs[l.d.ID]
	if l.lost || l.ended || e.lease != l || e.status.Fence != l.d.Fence {
		l.lost = l.lost || !l.ended
		return nil, fmt.Errorf("job %s, fence %d: %w", l.d.ID, l.d.Fence, job.ErrLeaseLost)
	}
	return e, nil
}

// Extend makes the lease last for another AckWait.
func (l *Lease) Extend(ctx context.Context) error {
	l.c.q.mu.Lock()
	defer l.c.q.mu.Unlock()
	if err := fault(&l.c.faults.extend); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("extend: %w: %w", job.ErrUnavailable, context.Cause(ctx))
	}
	if l.ended {
		return fmt.Errorf("extend: %w", errEnded)
	}
	e, err := l.own()
	if err != nil {
		return err
	}
	e.visible = time.Now().Add(l.c.q.cfg.Timing.AckWait)
	if e.cancel > l.mode {
		l.mode = e.cancel
		l.canceled <- e.cancel
	}
	return nil
}

// Emit keeps events.
func (l *Lease) Emit(_ context.Context, events []job.Event) error {
	l.c.q.mu.Lock()
	defer l.c.q.mu.Unlock()
	if err := fault(&l.c.faults.emit); err != nil {
		return err
	}
	e := l.c.q.jobs[l.d.ID]
	for _, ev := range events {
		ev.JobID, ev.Generation, ev.Attempt, ev.Fence = l.d.ID, l.d.Generation, l.d.Attempt, l.d.Fence
		if ev.Time.IsZero() {
			ev.Time = time.Now()
		}
		if ev.Seq == 0 {
			ev.Seq = l.seq + 1
		}
		l.seq = max(l.seq, ev.Seq)
		ev.Data = slices.Clone(ev.Data)
		e.events = append(e.events, ev)
	}
	l.c.q.announce()
	return nil
}

// Commit decides the job.
func (l *Lease) Commit(ctx context.Context, r *job.Result) (*job.Result, error) {
	l.c.q.mu.Lock()
	defer l.c.q.mu.Unlock()
	if err := fault(&l.c.faults.commit); err != nil {
		l.ended = true
		return nil, err
	}
	if ctx.Err() != nil {
		l.ended = true
		return nil, fmt.Errorf("commit: %w: %w", job.ErrUnavailable, context.Cause(ctx))
	}
	e, err := l.own()
	if err != nil {
		return nil, err
	}
	l.ended = true
	stands := *r
	if e.cancel != 0 && stands.Outcome != job.Canceled {
		stands.Outcome, stands.Reason, stands.Message = job.Canceled, job.ReasonCanceledByUser, "canceled by a user"
	}
	return l.c.q.decide(e, &stands), nil
}

// Requeue gives the job back for another attempt.
func (l *Lease) Requeue(_ context.Context, class job.Class, delay time.Duration, why job.Failure) error {
	switch class {
	case job.ClassJob, job.ClassInfra, job.ClassShutdown:
	default:
		return fmt.Errorf("requeue job %s: no attempt can be charged to class %q", l.d.ID, class)
	}
	return l.putBack(delay, func(s *job.Status) {
		switch class {
		case job.ClassJob:
			s.Counts.Job++
		case job.ClassInfra:
			s.Counts.Infra++
		}
		s.LastFailure = &why
	})
}

// Release gives the job back at once and at no cost.
func (l *Lease) Release(context.Context) error {
	return l.putBack(0, func(*job.Status) {})
}

func (l *Lease) putBack(delay time.Duration, charge func(*job.Status)) error {
	l.c.q.mu.Lock()
	defer l.c.q.mu.Unlock()
	e, err := l.own()
	if err != nil {
		return err
	}
	l.ended = true
	charge(&e.status)
	if e.cancel != 0 {
		l.c.q.decide(e, &job.Result{Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user"})
		return nil
	}
	e.status.State, e.lease, e.visible = job.StateQueued, nil, time.Time{}
	if delay > 0 {
		e.notBefore = time.Now().Add(delay)
		e.visible = e.notBefore
	}
	l.c.q.announce()
	return nil
}
