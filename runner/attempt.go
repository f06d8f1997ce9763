package runner

import (
	"context"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/box"
	"slipway/runner/internal/events"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/steps"
	"slipway/runner/internal/verdict"
	"slipway/runner/internal/workspace"
)

// attempt is one execution of one job. One goroutine runs it.
type attempt struct {
	worker   *Worker
	log      *zap.Logger
	lease    job.Lease
	delivery job.Delivery

	hold   *hold // of the job, while it is ours
	events *events.Stream
	box    *box.Box
	result job.Result // the steps and the workspace are added at its end

	// What accept has accepted; nil before.
	job       *job.Job // with its defaults
	spec      container.Spec
	workspace *workspace.Workspace
	executor  *steps.Executor // nil before the box is there
	untouched bool            // the engine was away before anything was asked of it for this job
}

// serve runs one claimed job to its end. Nothing of it is left when serve returns, and no panic of a Decider, a provider, a
// store or a queue ends the worker.
func (w *Worker) serve(root context.Context, lease job.Lease) {
	a := w.newAttempt(lease)
	a.hold = startHold(root, lease, w.cfg.Timing, a.result.StartedAt, w.cfg.Observer)
	defer a.hold.release()
	sink := events.Sink{Emit: lease.Emit, Printed: w.cfg.Observer.LogBytes, Missed: w.cfg.Observer.LogDropped, Limit: w.cfg.liveLimit(a.delivery.Attempt)}
	a.events = events.Start(a.hold.ctx, sink) //nolint:contextcheck // hold.ctx is root's
	defer a.events.Close()
	defer a.hold.stop()
	defer a.box.Watch(a.hold.ctx, stopGraceFor, w.killed)() //nolint:contextcheck // hold.ctx is root's
	// settle removes the box. This is for a panic in it.
	defer a.box.Remove(root)

	v := a.run()
	a.waitForLogs()
	if err := panics.Catch(func() error { a.settle(v); return nil }); err != nil { //nolint:contextcheck // as above
		a.log.Error("end attempt", zap.Error(err))
	}
}

// run does the work and says how it ended: accept the job, set up its box, run its steps, save its workspace.
func (a *attempt) run() (v verdict.Verdict) {
	defer a.judgePanic(&v)
	a.events.Add(job.Event{Kind: job.EventClaimed, Text: "worker " + a.worker.cfg.Name})
	decider, err := a.accept()
	if err != nil {
		return verdict.Judge(err, context.Cause(a.hold.work), job.ReasonInternal)
	}
	if err := a.worker.engine.ready(a.hold.work); err != nil {
		a.untouched = true
		return verdict.Judge(err, context.Cause(a.hold.work), job.ReasonEngineUnavailable)
	}
	for _, p := range a.setup() {
		if v, ok := a.phase(a.hold.work, p); !ok {
			return v
		}
	}

	began := a.enter(phaseSteps)
	stopClock := a.hold.limit(a.job.Timeout.Std())
	defer stopClock() // after a panic
	a.executor = steps.New(a.executorConfig(), decider)
	v = a.executor.Run(a.hold.ctx, a.hold.work)
	stopClock()
	a.leave(phaseSteps, began, &a.result.Phases.Steps, v.Outcome == job.Succeeded)

	if !a.workspace.Saves(v.Outcome) {
		return v
	}
	// Whatever ends the attempt here ends it before its files are saved: that is no success.
	if cause := context.Cause(a.hold.ctx); cause != nil {
		a.workspace.NotSaved("ended before the push")
		return afterPush(v, verdict.Stopped(cause))
	}
	if failed, ok := a.phase(a.hold.ctx, a.push()); !ok {
		a.workspace.NotSaved("the push failed")
		return afterPush(v, failed)
	}
	return v
}

// judgePanic is deferred. It makes the verdict on a panic.
func (a *attempt) judgePanic(v *verdict.Verdict) {
	if p := recover(); p != nil {
		err := &panics.Error{Value: p}
		a.log.Error("attempt panicked", zap.Error(err), zap.Stack("stack"))
		*v = verdict.Judge(err, nil, job.ReasonInternal)
	}
}

// afterPush is the verdict when the push failed: the steps' own, if they failed too.
func afterPush(steps, push verdict.Verdict) verdict.Verdict {
	switch {
	case steps.Outcome == job.Succeeded, push.Reason == job.ReasonLeaseLost, push.Reason == job.ReasonDrained:
		return push
	case steps.Reason == push.Reason:
		return steps // the attempt was ended from outside before the push
	}
	steps.Message += "; the workspace was not saved either: " + push.Message
	return steps
}
