package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/job"
)

// end, after begin, brings the record from this claim to what edit makes of it. It returns ErrLeaseLost if the record has
// another owner.
func (l *lease) end(ctx context.Context, edit func(record) (*record, error)) (version, error) {
	l.mu.Lock()
	known := l.rec
	l.mu.Unlock()
	var fault error
	v, err := l.k.q.records.change(ctx, l.d.ID, known, func(rec *record) *record {
		if !l.holds(rec) {
			fault = l.lose()
			return nil
		}
		var next *record
		next, fault = edit(*rec)
		return next
	}, l.hasEnded)
	if err != nil {
		return v, err
	}
	return v, fault
}

// hasEnded tells whether rec was written by this lease, or by a user's cancel after it: only the holder of a fence ends the
// running state of a record.
func (l *lease) hasEnded(rec *record) bool {
	return rec.Fence == l.d.Fence && rec.Boot == l.k.boot && rec.State != job.StateRunning
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
		return &rec, l.k.q.decisions.conclude(l.d.ID, &rec, &stands)
	})
	if err != nil {
		return nil, fmt.Errorf("commit job %s: %w", l.d.ID, err)
	}
	return l.settle(ctx, v)
}

// settle does what follows a decision of this lease. The decision stands also if settling fails: then the token comes to
// another worker, which settles.
func (l *lease) settle(ctx context.Context, v version) (*job.Result, error) {
	r, err := l.k.q.decisions.result(ctx, l.d.ID, v.rec)
	if err != nil {
		return nil, fmt.Errorf("read the result of job %s: %w", l.d.ID, err)
	}
	// The last event goes out before the result, so that a reader of the result finds all events.
	finished := job.Event{Kind: job.EventFinished, Outcome: r.Outcome, Reason: r.Reason, Text: r.Message, Time: r.FinishedAt}
	if err := l.events.announce(finished); err != nil {
		l.k.q.cfg.OnError(err)
	}
	l.mu.Lock()
	msg := l.msg
	l.mu.Unlock()
	if err := l.k.q.decisions.settle(ctx, l.d.ID, v, l.token.spec, msg); err != nil {
		l.k.q.cfg.OnError(err)
	}
	return r, nil
}

// newsTime bounds the look at the events of a dead attempt.
const newsTime = 2 * time.Second

// settleUnrun is settle for a claim that decided instead of running. The last event gets the number after those of the
// attempt before: readers take an event with an earlier number for a repetition. If those events can't be read, the last
// event is left out, and a follower makes it from the result.
func (l *lease) settleUnrun(ctx context.Context, v version) error {
	c := l.k.q
	newsCtx, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	seq, err := l.events.lastSeq(newsCtx)
	if err != nil {
		c.cfg.OnError(fmt.Errorf("number the last event of job %s: %w", l.d.ID, err))
		return c.decisions.settle(ctx, l.d.ID, v, l.token.spec, l.msg)
	}
	l.events.seq = seq
	_, err = l.settle(ctx, v)
	return err
}

// cancelResult turns r into the result of a job that a user canceled in time. It keeps
// what the attempt did.
func cancelResult(r *job.Result) {
	if r.Outcome != job.Canceled {
		r.Outcome, r.Reason, r.Message = job.Canceled, job.ReasonCanceledByUser, "canceled by a user"
	}
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
	return l.giveBack(ctx, "requeue", delay, func(rec *record) {
		switch class {
		case job.ClassJob:
			rec.Counts.Job++
		case job.ClassInfra:
			rec.Counts.Infra++
		}
		rec.LastFailure = &why
	})
}

// maxFailureMessage bounds the message of a failure that a record keeps, in bytes.
const maxFailureMessage = 1 << 10

// Release gives the job back at once and at no cost.
func (l *lease) Release(ctx context.Context) error {
	return l.giveBack(ctx, "release", 0, func(*record) {})
}

func (l *lease) giveBack(ctx context.Context, op string, delay time.Duration, charge func(*record)) error {
	if err := l.begin(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	defer l.finish()
	v, err := l.end(ctx, func(rec record) (*record, error) {
		charge(&rec)
		if rec.Cancel != 0 {
			r := &job.Result{StartedAt: rec.StartedAt}
			cancelResult(r)
			return &rec, l.k.q.decisions.conclude(l.d.ID, &rec, r)
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
		_, err := l.settle(ctx, v)
		return err
	}
	l.returnToken(ctx, v.rec, delay)
	return nil
}

// returnToken hands the token back. The record says already that the job waits, and until when. So an error here delays the
// job by AckWait at most.
func (l *lease) returnToken(ctx context.Context, rec *record, delay time.Duration) {
	c := l.k.q
	l.mu.Lock()
	msg := l.msg
	l.mu.Unlock()
	var err error
	if delay >= c.cfg.longDelay() {
		t := l.token
		t.queue, t.priority, t.submittedAt = rec.Queue, rec.Priority, rec.SubmittedAt
		if err = c.js.EnsureCreated(ctx, "schedule the next attempt", c.tokens.schedule(t, rec.Generation, rec.Fence, rec.NotBefore)); err == nil {
			err = c.js.Ack(ctx, msg)
		}
	} else {
		err = c.js.Nak(ctx, msg, delay)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.cfg.OnError(fmt.Errorf("give back the token of job %s: %w", l.d.ID, err))
	}
}
