package runner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/job"
)

// maxMessage bounds a result's message, in bytes.
const maxMessage = 2 << 10

// finish decides what becomes of the job, says so to the queue, and removes the box.
func (a *attempt) finish(holdCtx context.Context, v verdict) {
	if cause := context.Cause(holdCtx); lostLease(cause) {
		v = stopped(cause) // whatever came of the work, it is somebody else's job now
	}
	v.message = shorten(v.message, maxMessage)
	d := decide(v, a.d.Counts, a.budgets())
	switch d.next {
	case nextCommit:
		// The reader waits for the result, not for the engine.
		var removal sync.WaitGroup
		removal.Go(func() { a.clean(holdCtx) })
		a.commit(holdCtx, d.verdict)
		a.keeper.stop() // the lease is over; a slow removal needs none
		removal.Wait()
	case nextDrop:
		a.clean(holdCtx)
		a.dropped(holdCtx, nil)
	case nextRequeue, nextRelease:
		a.clean(holdCtx) // first: the next attempt may begin at once, and never beside this box
		a.giveBack(holdCtx, d)
	}
}

func lostLease(cause error) bool {
	return errors.Is(cause, job.ErrLeaseLost) || errors.Is(cause, errSelfFenced)
}

// settleCtx bounds what is said to the queue. It ends when the lease is lost,
// but not because the worker stops.
func (a *attempt) settleCtx(holdCtx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := a.w.bounded(holdCtx, max(a.w.cfg.CleanupTimeout, a.w.cfg.Timing.AckWait), killSettle)
	stop := context.AfterFunc(holdCtx, func() {
		if lostLease(context.Cause(holdCtx)) {
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}

// commit makes v the job's result.
func (a *attempt) commit(holdCtx context.Context, v verdict) {
	ctx, cancel := a.settleCtx(holdCtx)
	defer cancel()
	r := a.result
	r.Version, r.FinishedAt = job.Version, time.Now()
	r.Outcome, r.Reason, r.Message = v.outcome, v.reason, v.message
	a.events.flush(ctx) // before the queue's own event of the end
	stands, err := a.lease.Commit(ctx, &r)
	switch {
	case errors.Is(err, job.ErrLeaseLost), err != nil && lostLease(context.Cause(holdCtx)):
		a.dropped(holdCtx, err)
	case err != nil:
		// The lease runs out by itself, and the queue hands the job to somebody else.
		a.log.Error("commit result", zap.String("outcome", string(v.outcome)), zap.Error(err))
	default:
		a.obs.JobDone(stands)
		a.log.Info("job done", zap.String("outcome", string(stands.Outcome)), zap.String("reason", string(stands.Reason)),
			zap.String("message", stands.Message), zap.Duration("took", r.FinishedAt.Sub(r.StartedAt)))
	}
}

// giveBack puts the job back into the queue.
func (a *attempt) giveBack(holdCtx context.Context, d decision) {
	ctx, cancel := a.settleCtx(holdCtx)
	defer cancel()
	v := d.verdict
	a.events.add(retryEvent(d, time.Now()))
	a.events.flush(ctx)
	err := a.backTo(ctx, d)
	fields := []zap.Field{
		zap.String("class", string(d.class)), zap.String("reason", string(v.reason)),
		zap.String("message", v.message), zap.Duration("delay", d.delay),
	}
	switch {
	case errors.Is(err, job.ErrLeaseLost), err != nil && lostLease(context.Cause(holdCtx)):
		a.dropped(holdCtx, err)
	case err != nil:
		a.log.Error("give job back", append(fields, zap.Error(err))...)
	default:
		a.obs.JobRetried(d.class, v.reason)
		a.log.Warn("job goes back", fields...)
	}
}

func retryEvent(d decision, now time.Time) job.Event {
	v := d.verdict
	e := job.Event{Kind: job.EventRetry, Outcome: v.outcome, Reason: v.reason, Text: v.message, Class: d.class, Left: d.left}
	if d.delay > 0 {
		e.NotBefore = now.Add(d.delay)
	}
	return e
}

func (a *attempt) backTo(ctx context.Context, d decision) error {
	if d.next == nextRelease {
		return a.lease.Release(ctx)
	}
	why := job.Failure{Outcome: d.verdict.outcome, Reason: d.verdict.reason, Message: d.verdict.message}
	return a.lease.Requeue(ctx, d.class, d.delay, why)
}

// dropped notes that the job is not ours any more. err is how the queue said so, if it did.
func (a *attempt) dropped(holdCtx context.Context, err error) {
	if cause := context.Cause(holdCtx); lostLease(cause) {
		err = cause
	}
	fenced := errors.Is(err, errSelfFenced)
	a.obs.LeaseLost(fenced)
	a.log.Warn("lease lost, nothing published", zap.Bool("fenced", fenced), zap.NamedError("cause", err))
}

// shorten cuts s to at most limit bytes, at the edge of a character.
func shorten(s string, limit int) string {
	const mark = " …"
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
