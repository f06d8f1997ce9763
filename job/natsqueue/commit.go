package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"slipway/job"
)

// end, after begin, brings the record from this claim to what edit makes of it. ErrLeaseLost
// if it is not ours any more. Only the holder of a fence moves a running record
// on, but for a user's cancel of what was given back, so a record that has our
// fence and runs no more is our own write, or that cancel after it.
func (l *lease) end(ctx context.Context, edit func(record) (*record, error)) (version, error) {
	l.mu.Lock()
	known := l.rec
	l.mu.Unlock()
	var fault error
	ended := func(rec *record) bool {
		return rec.Fence == l.d.Fence && rec.Boot == l.k.boot && rec.State != job.StateRunning
	}
	v, err := l.k.conn.change(ctx, l.d.ID, known, func(rec *record) *record {
		if !l.holds(rec) {
			fault = l.lose()
			return nil
		}
		var next *record
		next, fault = edit(*rec)
		return next
	}, ended)
	if err != nil {
		return v, err
	}
	return v, fault
}

// Commit decides the job. See job.Lease.
func (l *lease) Commit(ctx context.Context, r *job.Result) (*job.Result, error) {
	if err := l.begin(); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	defer l.finish() // after the settling: until then the lease is kept alive
	v, err := l.end(ctx, func(rec record) (*record, error) {
		stands := *r
		stands.JobID = l.d.ID
		if rec.Cancel != 0 {
			cancelResult(&stands)
		}
		return &rec, conclude(l.d.ID, &rec, &stands, l.k.conn.resultLimit())
	})
	if err != nil {
		return nil, fmt.Errorf("commit job %s: %w", l.d.ID, err)
	}
	return l.settle(ctx, v.rec)
}

// settle follows a decision of this lease. The decision stands whatever comes of
// it: the token of a job that is not settled comes to another worker, who does it.
func (l *lease) settle(ctx context.Context, rec *record) (*job.Result, error) {
	r := new(job.Result)
	if err := json.Unmarshal(rec.Result, r); err != nil {
		return nil, fmt.Errorf("read the result of job %s: %w", l.d.ID, err)
	}
	// Before the result, so that who sees that can read the events to their end.
	finished := job.Event{Kind: job.EventFinished, Outcome: r.Outcome, Reason: r.Reason, Text: r.Message, Time: r.FinishedAt}
	if err := l.Emit(ctx, []job.Event{finished}); err != nil {
		l.k.conn.cfg.OnError(err)
	}
	l.mu.Lock()
	msg := l.msg
	l.mu.Unlock()
	if err := l.k.conn.settle(ctx, l.d.ID, rec, l.token.spec, msg); err != nil {
		l.k.conn.cfg.OnError(err)
	}
	return r, nil
}

// newsTime bounds the look at the events of an attempt that is dead.
const newsTime = 2 * time.Second

// settleUnrun is settle for a claim that decided instead of running. Its last event follows those of the attempt
// before, for readers take any other for a repetition of them. If those can't be read the event is left out: events are news,
// and whoever follows makes it from the result.
func (l *lease) settleUnrun(ctx context.Context, rec *record) error {
	c := l.k.conn
	newsCtx, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	seq, err := c.lastSeq(newsCtx, l.d)
	if err != nil {
		c.cfg.OnError(fmt.Errorf("number the last event of job %s: %w", l.d.ID, err))
		return c.settle(ctx, l.d.ID, rec, l.token.spec, l.msg)
	}
	l.seq = seq
	_, err = l.settle(ctx, rec)
	return err
}

// cancelResult turns r into the result of a job that a user canceled in time. What
// the attempt did is still told.
func cancelResult(r *job.Result) {
	if r.Outcome != job.Canceled {
		r.Outcome, r.Reason, r.Message = job.Canceled, job.ReasonCanceledByUser, "canceled by a user"
	}
}

// conclude makes rec final with r, whose identity is filled in from rec.
func conclude(id job.ID, rec *record, r *job.Result, limit int) error {
	r.JobID, r.Generation, r.Queue, r.SubmittedAt = id, rec.Generation, rec.Queue, rec.SubmittedAt
	r.Attempt, r.Fence = rec.Attempt, rec.Fence
	if rec.Owner != "" {
		r.Worker = rec.Owner
	}
	if r.Name == "" {
		r.Name = rec.Name
	}
	if r.Labels == nil {
		r.Labels = rec.Labels
	}
	if r.Version == "" {
		r.Version = job.Version
	}
	if r.FinishedAt.IsZero() {
		r.FinishedAt = time.Now().UTC()
	}
	data, err := encodeResult(r, limit)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	rec.State, rec.Reason, rec.FinishedAt, rec.Result = job.FinalState(r.Outcome), r.Reason, r.FinishedAt, data
	return nil
}

// Requeue gives the job back for another attempt. If a user asked for its end
// meanwhile, it is decided as canceled instead.
func (l *lease) Requeue(ctx context.Context, class job.Class, delay time.Duration, why job.Failure) error {
	switch class {
	case job.ClassJob, job.ClassInfra, job.ClassShutdown:
	default:
		return fmt.Errorf("requeue job %s: no attempt can be charged to class %q", l.d.ID, class)
	}
	why.Message = cut(why.Message, maxFailureMessage)
	return l.putBack(ctx, "requeue", delay, func(rec *record) {
		switch class {
		case job.ClassJob:
			rec.Counts.Job++
		case job.ClassInfra:
			rec.Counts.Infra++
		}
		rec.LastFailure = &why
	})
}

// maxFailureMessage bounds what a record keeps of a failure, in bytes.
const maxFailureMessage = 1 << 10

// Release gives the job back at once and at no cost.
func (l *lease) Release(ctx context.Context) error {
	return l.putBack(ctx, "release", 0, func(*record) {})
}

func (l *lease) putBack(ctx context.Context, op string, delay time.Duration, charge func(*record)) error {
	if err := l.begin(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	defer l.finish()
	v, err := l.end(ctx, func(rec record) (*record, error) {
		charge(&rec)
		if rec.Cancel != 0 {
			r := &job.Result{StartedAt: rec.StartedAt}
			cancelResult(r)
			return &rec, conclude(l.d.ID, &rec, r, l.k.conn.resultLimit())
		}
		rec.State = job.StateQueued
		if delay > 0 {
			rec.NotBefore = time.Now().Add(delay).UTC()
		}
		return &rec, nil
	})
	if err != nil {
		return fmt.Errorf("%s job %s: %w", op, l.d.ID, err)
	}
	if v.rec.State.Final() {
		_, err := l.settle(ctx, v.rec)
		return err
	}
	l.returnToken(ctx, v.rec, delay)
	return nil
}

// longDelay is from where on a delayed token waits in SCHED instead of its lane.
// A lane keeps it in memory, and rounds its times at a restart.
const longDelay = time.Minute

// returnToken hands the token back. The record says already that the job waits,
// and until when, so an error here costs no more than AckWait.
func (l *lease) returnToken(ctx context.Context, rec *record, delay time.Duration) {
	c := l.k.conn
	l.mu.Lock()
	msg := l.msg
	l.mu.Unlock()
	var err error
	if delay >= c.longDelay() {
		t := l.token
		t.queue, t.class, t.submittedAt = rec.Queue, rec.Class, rec.SubmittedAt
		if err = c.created(ctx, "schedule the next attempt", c.schedule(t, rec.Generation, rec.Fence, rec.NotBefore)); err == nil {
			err = c.ack(ctx, msg)
		}
	} else {
		err = c.nak(ctx, msg, delay)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.cfg.OnError(fmt.Errorf("give back the token of job %s: %w", l.d.ID, err))
	}
}
