package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// end, after begin, brings the record from this claim to what edit makes of it. It waits for a store that is full, and
// calls delayed at each try that failed. It returns ErrLeaseLost if the record has another owner.
func (l *lease) end(ctx context.Context, delayed func(error), edit func(record) (*record, error)) (version, error) {
	l.mu.Lock()
	known := l.rec
	l.mu.Unlock()
	var fault error
	v, err := l.k.q.records.awaitRoom(delayed).change(ctx, l.d.ID, known, func(rec *record) *record {
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

// repeatDelay is how often one call says anew that it waits for room.
const repeatDelay = time.Minute

// sayDelayed reports that a call waits for room: when it begins to, and then from time to time. A server that does not
// answer is reported by the connection itself.
func (l *lease) sayDelayed(ctx context.Context, op string) func(error) {
	var said time.Time
	return func(err error) {
		if jsconn.IsFull(err) && (said.IsZero() || time.Since(said) > repeatDelay) {
			said = time.Now()
			err = l.k.q.rooms.explain(ctx, err)
			l.k.q.cfg.OnError(fmt.Errorf("%s job %s: it waits for room, the job stays with this worker: %w", op, l.d.ID, err))
		}
	}
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
	say, keep := l.sayDelayed(ctx, "commit"), l.keeper(r)
	v, err := l.end(ctx, func(err error) { say(err); keep() }, func(rec record) (*record, error) {
		stands := *r
		stands.JobID = l.d.ID
		if rec.Cancel != 0 {
			cancelResult(&stands)
		}
		return &rec, l.k.q.decisions.conclude(l.d.ID, &rec, &stands)
	})
	if err == nil || errors.Is(err, job.ErrLeaseLost) {
		l.drop(err)
	}
	if err != nil {
		return nil, fmt.Errorf("commit job %s: %w", l.d.ID, l.k.q.rooms.explain(ctx, err))
	}
	return l.settle(ctx, v)
}

// keeper returns what keeps r in the outbox, once. It is called while a commit waits, since the process may be killed then.
func (l *lease) keeper(r *job.Result) func() {
	return func() {
		if l.kept || l.k.outbox == nil {
			return
		}
		l.kept = true
		k := keeping(l)
		k.Result = r
		if err := l.k.outbox.save(k); err != nil {
			l.k.q.cfg.OnError(err)
		}
	}
}

// keeping says whose result l keeps.
func keeping(l *lease) *kept {
	return &kept{
		Version: keptVersion, ID: l.d.ID, Generation: l.d.Generation, Attempt: l.d.Attempt, Fence: l.d.Fence,
		Owner: l.d.Worker, Boot: l.k.boot, KeptAt: time.Now().UTC(),
	}
}

// drop takes the result out of the outbox when its commit has come to an end: decided, or too late.
func (l *lease) drop(end error) {
	if !l.kept {
		return
	}
	err := l.k.outbox.remove(keeping(l), func(u *OutboxUse) {
		if end != nil {
			u.Late++
		}
	})
	if err != nil {
		l.k.q.cfg.OnError(err) // a replay finds that it is done
	}
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
	v, err := l.end(ctx, l.sayDelayed(ctx, op), func(rec record) (*record, error) {
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
		return fmt.Errorf("%s job %s: %w", op, l.d.ID, l.k.q.rooms.explain(ctx, err))
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
