package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/job"
	"slipway/runner/internal/excerpt"
	"slipway/runner/internal/verdict"
)

// maxMessage bounds a result's message, in bytes.
const maxMessage = 2 << 10

// settle decides what becomes of the job, says so to the queue, and removes the box.
func (a *attempt) settle(v verdict.Verdict) {
	if a.hold.lost() {
		v = verdict.Stopped(context.Cause(a.hold.ctx)) // whatever came of the work, it is somebody else's job now
	}
	if v.Reason == job.ReasonEngineUnavailable || v.Reason == job.ReasonBoxLost {
		a.worker.engine.doubt()
	}
	v.Message = excerpt.Shorten(v.Message, maxMessage)
	d := decide(v, a.delivery.Counts, a.budgets())
	switch d.next {
	case nextCommit:
		// The reader waits for the result, not for the engine.
		var removal sync.WaitGroup
		removal.Go(func() { a.box.Remove(a.hold.ctx) })
		a.commit(d.verdict)
		a.hold.stop() // the lease is over; a slow removal needs none
		removal.Wait()
	case nextDrop:
		a.box.Remove(a.hold.ctx)
		a.dropped(nil)
	case nextRequeue, nextRelease:
		a.box.Remove(a.hold.ctx) // first: the next attempt may begin at once, and never beside this box
		a.giveBack(d)
	}
}

// budgets are those of this attempt's job.
func (a *attempt) budgets() budgets {
	b := budgets{untouched: a.untouched, infra: a.worker.cfg.InfraBudget, backoff: a.worker.cfg.InfraBackoff, jitter: rand.Float64()}
	if a.job != nil {
		b.retry = a.job.Retry
	}
	return b
}

// settleCtx bounds what is said to the queue. It lasts as long as the queue confirms the lease: a queue that has no room for
// the result gets some, and to run a finished job again costs more than a slot that waits. A worker that stops gives the
// call a last CleanupTimeout, or AckWait if that is more.
func (a *attempt) settleCtx() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.hold.ctx))
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-a.hold.ctx.Done():
		}
		if a.hold.lost() {
			cancel()
			return
		}
		last, done := a.worker.bounded(ctx, max(a.worker.cfg.CleanupTimeout, a.worker.cfg.Timing.AckWait), killSettle)
		defer done()
		select {
		case <-ctx.Done():
		case <-last.Done():
			cancel()
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}

// commit makes v the job's result.
func (a *attempt) commit(v verdict.Verdict) {
	ctx, cancel := a.settleCtx()
	defer cancel()
	r := a.result
	r.Version, r.FinishedAt = job.Version, time.Now()
	r.Outcome, r.Reason, r.Message = v.Outcome, v.Reason, v.Message
	if a.executor != nil {
		r.Steps, r.StepsElided = a.executor.Results()
	}
	if a.workspace != nil {
		r.Workspace = a.workspace.Result()
	}
	a.flush(ctx) // before the queue's own event of the end
	stands, err := a.lease.Commit(ctx, &r)
	switch {
	case errors.Is(err, job.ErrLeaseLost), err != nil && a.hold.lost():
		a.dropped(err)
	case err != nil:
		// The lease runs out by itself, and the queue hands the job to somebody else.
		a.log.Error("commit result", zap.String("outcome", string(v.Outcome)), zap.Error(err))
	default:
		a.worker.cfg.Observer.JobDone(stands)
		a.log.Info("job done", zap.String("outcome", string(stands.Outcome)), zap.String("reason", string(stands.Reason)),
			zap.String("message", stands.Message), zap.Duration("took", r.FinishedAt.Sub(r.StartedAt)))
	}
}

// giveBack puts the job back into the queue.
func (a *attempt) giveBack(d decision) {
	ctx, cancel := a.settleCtx()
	defer cancel()
	v := d.verdict
	a.events.Add(retryEvent(d, time.Now()))
	a.flush(ctx)
	err := a.backTo(ctx, d)
	fields := []zap.Field{
		zap.String("class", string(d.class)), zap.String("reason", string(v.Reason)),
		zap.String("message", v.Message), zap.Duration("delay", d.delay),
	}
	switch {
	case errors.Is(err, job.ErrLeaseLost), err != nil && a.hold.lost():
		a.dropped(err)
	case err != nil:
		a.log.Error("give job back", append(fields, zap.Error(err))...)
	default:
		a.worker.cfg.Observer.JobRetried(d.class, v.Reason)
		a.log.Warn("job goes back", fields...)
	}
}

// flush sends the events. After Kill they get half of the time: what is then said to the queue matters more.
func (a *attempt) flush(ctx context.Context) {
	limited, cancel := a.worker.bounded(ctx, a.worker.cfg.CleanupTimeout, killSettle/2)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	a.events.Flush(limited)
}

func retryEvent(d decision, now time.Time) job.Event {
	v := d.verdict
	e := job.Event{Kind: job.EventRetry, Outcome: v.Outcome, Reason: v.Reason, Text: v.Message, Class: d.class, Left: d.left}
	if d.delay > 0 {
		e.NotBefore = now.Add(d.delay)
	}
	return e
}

func (a *attempt) backTo(ctx context.Context, d decision) error {
	if d.next == nextRelease {
		return a.lease.Release(ctx)
	}
	why := job.Failure{Outcome: d.verdict.Outcome, Reason: d.verdict.Reason, Message: d.verdict.Message}
	return a.lease.Requeue(ctx, d.class, d.delay, why)
}

// dropped notes that the job is not ours any more. err is how the queue said so, if it did.
func (a *attempt) dropped(err error) {
	if a.hold.lost() {
		err = context.Cause(a.hold.ctx)
	}
	fenced := errors.Is(err, verdict.ErrSelfFenced)
	a.worker.cfg.Observer.LeaseLost(fenced)
	a.log.Warn("lease lost, nothing published", zap.Bool("fenced", fenced), zap.NamedError("cause", err))
}

// waitForLogs waits until the logs of the steps are stored, or given up.
func (a *attempt) waitForLogs() {
	if a.executor != nil {
		a.executor.Wait()
	}
}
