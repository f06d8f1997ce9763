package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
)

// The names of an attempt's phases, in order. They are metric labels.
const (
	phasePullImage     = "pull_image"
	phaseCreate        = "create"
	phasePullWorkspace = "pull_workspace"
	phaseSteps         = "steps"
	phasePushWorkspace = "push_workspace"
	phaseCleanup       = "cleanup"
)

// stopGrace is how long a running command may react to TERM once the worker
// stops, whatever grace its step asks for.
const stopGrace = 10 * time.Second

// attempt is one execution of one job. Its fields are written by the goroutine
// that runs it, except where said.
type attempt struct {
	w     *Worker
	obs   Observer
	log   *zap.Logger
	lease job.Lease
	d     job.Delivery

	job    *job.Job // with its defaults; nil until the spec was decoded
	spec   container.Spec
	size   int // of a step's excerpt, in bytes
	result job.Result
	work   workspace

	boxName string
	box     sync.Mutex // guards sandbox, which watch reads
	sandbox container.Sandbox

	undo   *teardown
	events *events
	keeper *keeper
	logs   logs
}

// serve runs one claimed job to its end. Nothing of it is left when serve
// returns, and nothing that it does can end the worker.
func (w *Worker) serve(rootCtx context.Context, lease job.Lease) {
	d := lease.Delivery()
	claimed := d.ClaimedAt
	if claimed.IsZero() {
		claimed = time.Now()
	}
	a := &attempt{
		w: w, obs: w.cfg.Observer, lease: lease, d: d, boxName: boxName(d), undo: newTeardown(),
		log: w.log.With(zap.String("job", string(d.ID)), zap.Int("attempt", d.Attempt),
			zap.Uint64("fence", d.Fence), zap.String("queue", d.Queue)),
	}
	a.result.StartedAt = claimed
	a.result.Phases.Queue = job.Duration(waited(d, claimed))
	a.obs.JobClaimed(d.Queue, a.result.Phases.Queue.Std())
	a.log.Info("attempt begins", zap.Duration("waited", a.result.Phases.Queue.Std()))

	// holdCtx lasts as long as the job is ours and the worker goes on. workCtx
	// also ends with the job's timeout and with a first cancel, which always-steps and the push outlive.
	holdCtx, drop := context.WithCancelCause(rootCtx)
	defer drop(nil)
	workCtx, interrupt := context.WithCancelCause(holdCtx)
	defer interrupt(nil)

	a.events = startEvents(holdCtx, lease, a.obs)
	defer a.events.close()
	a.keeper = startKeeper(holdCtx, lease, w.cfg.Timing, claimed, a.obs, drop, interrupt)
	defer a.keeper.stop()
	stopWatch := a.watch(holdCtx)
	defer stopWatch()
	defer a.logs.uploads.Wait()
	defer a.clean(rootCtx) // again, in case that something below panics

	if err := recovered(func() error { a.finish(holdCtx, a.run(holdCtx, workCtx, interrupt)); return nil }); err != nil {
		a.log.Error("end attempt", zap.Error(err))
	}
}

// waited is how long the job could have begun before it did.
func waited(d job.Delivery, claimed time.Time) time.Duration {
	from := d.EligibleAt
	if from.IsZero() {
		from = d.SubmittedAt
	}
	if from.IsZero() {
		return 0
	}
	return max(claimed.Sub(from), 0)
}

// run does the work and says how it ended.
func (a *attempt) run(holdCtx, workCtx context.Context, interrupt context.CancelCauseFunc) (v verdict) {
	err := recovered(func() error {
		v = a.execute(holdCtx, workCtx, interrupt)
		a.logs.wait(&a.result)
		return nil
	})
	var p *panicError
	if errors.As(err, &p) {
		a.log.Error("attempt panicked", zap.Error(err), zap.Stack("stack"))
		return judge("", err, nil)
	}
	return v
}

// execute goes through the phases. What a phase leaves behind is undone by clean.
func (a *attempt) execute(holdCtx, workCtx context.Context, interrupt context.CancelCauseFunc) verdict {
	a.events.add(job.Event{Kind: job.EventClaimed, Text: "worker " + a.w.cfg.Name})
	if err := a.accept(); err != nil {
		return judge("", err, context.Cause(workCtx))
	}
	for _, p := range a.setup() {
		if v, ok := a.phase(workCtx, p); !ok {
			return v
		}
	}
	v := a.steps(holdCtx, workCtx, interrupt)
	if !a.pushes(v) {
		a.notSaved(v)
		return v
	}
	// Whoever ends the attempt here ends it before its files are saved: that is no success.
	if cause := context.Cause(holdCtx); cause != nil {
		a.work.result.NotSaved = "ended before the push"
		return afterPush(v, stopped(cause))
	}
	if failed, ok := a.phase(holdCtx, a.push()); !ok {
		a.work.result.NotSaved = "the push failed"
		return afterPush(v, failed)
	}
	return v
}

// afterPush is the verdict when the push failed: the steps' own, if they failed too.
func afterPush(steps, push verdict) verdict {
	switch {
	case steps.outcome == job.Succeeded, push.reason == job.ReasonLeaseLost, push.reason == job.ReasonDrained:
		return push
	case steps.reason == push.reason:
		return steps // ended from outside already, before the push
	}
	steps.message += "; the workspace was not saved either: " + push.message
	return steps
}

// phase is a part of an attempt that is timed, bounded and told about.
type phase struct {
	name  string
	limit *timeoutError // nil: no clock of its own
	took  *job.Duration // where its time goes
	do    func(context.Context) error
}

// phase runs p. ok is false if it failed, and v says how that counts.
func (a *attempt) phase(ctx context.Context, p phase) (v verdict, ok bool) {
	a.events.add(job.Event{Kind: job.EventPhase, Text: p.name})
	began := time.Now()
	err := runLimited(ctx, p)
	took := time.Since(began)
	*p.took += job.Duration(took)
	a.obs.PhaseDone(p.name, took, err == nil)
	if err != nil {
		v = judge(p.name, err, context.Cause(ctx))
		if v.reason == job.ReasonDisk {
			v.message = a.hintDisk(v.message, err)
		}
		return v, false
	}
	a.log.Debug("phase done", zap.String("phase", p.name), zap.Duration("took", took))
	return verdict{}, true
}

func runLimited(ctx context.Context, p phase) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.limit == nil {
		return p.do(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.limit.limit, p.limit)
	defer cancel()
	err := p.do(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("%w: %w", p.limit, err) // without it a person reads no more than "deadline exceeded"
	}
	return err
}

// watch destroys the box as soon as nobody may use it any more, without waiting
// for the grace of what runs in it. The function it returns ends the watch.
func (a *attempt) watch(holdCtx context.Context) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case <-holdCtx.Done():
		}
		if errors.Is(context.Cause(holdCtx), ErrSoftStop) {
			grace := time.NewTimer(stopGrace)
			defer grace.Stop()
			select {
			case <-done:
				return
			case <-grace.C:
			case <-a.w.killed:
			}
		}
		a.box.Lock()
		alive := a.sandbox != nil
		a.box.Unlock()
		if alive { // else the setup is under way: it meets its dead context and cleans up
			a.clean(holdCtx)
		}
	})
	return func() { close(done); wg.Wait() }
}

// budgets are those of this attempt's job.
func (a *attempt) budgets() budgets {
	b := budgets{infra: a.w.cfg.InfraBudget, backoff: a.w.cfg.InfraBackoff, jitter: rand.Float64()}
	if a.job != nil {
		b.retry = a.job.Retry
	}
	return b
}
