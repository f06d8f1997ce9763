package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway/internal/pause"
	"slipway/job"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
)

// hold is this worker's hold on one job: for how long, and why it ended. It keeps the lease alive with two loops: one
// extends, and a clock of its own watches, so that an extension that hangs can't hide that the lease is over.
type hold struct {
	// ctx lasts as long as the job is ours and the worker goes on. Its cause says who ended it.
	ctx context.Context //nolint:containedctx // a hold is little else
	// work is within ctx. It also ends at the job's timeout and at a first cancel; always-steps and the push outlive it.
	work context.Context //nolint:containedctx // as above

	drop      context.CancelCauseFunc // ends ctx
	interrupt context.CancelCauseFunc // ends work

	lease    job.Lease
	timing   job.Timing
	observer Observer
	fence    *time.Timer // gives the lease up
	quit     context.CancelFunc
	loops    sync.WaitGroup
}

// startHold starts the loops. claimed is when the lease was confirmed first. stop ends the loops, and release the hold.
func startHold(root context.Context, lease job.Lease, timing job.Timing, claimed time.Time, observer Observer) *hold {
	h := &hold{lease: lease, timing: timing, observer: observer}
	h.ctx, h.drop = context.WithCancelCause(root)
	h.work, h.interrupt = context.WithCancelCause(h.ctx)
	// The loops don't end with h.ctx: a box that is removed after a soft stop is still covered by the lease.
	ctx, quit := context.WithCancel(context.WithoutCancel(root))
	h.quit = quit
	h.fence = time.AfterFunc(timing.Lease-time.Since(claimed), func() { h.drop(verdict.ErrSelfFenced) })
	h.loops.Go(func() {
		if err := panics.Catch(func() error { h.extendLoop(ctx); return nil }); err != nil {
			h.drop(err)
		}
	})
	h.loops.Go(func() { h.cancelLoop(ctx) })
	return h
}

// stop lets the lease go: nothing extends it any more. It waits for the loops, and may be called more than once.
func (h *hold) stop() {
	h.quit()
	h.fence.Stop()
	h.loops.Wait()
}

// release ends the contexts. Call it after stop.
func (h *hold) release() { h.drop(nil) }

// limit ends work after the job's timeout, counted from now. The function it returns stops that clock.
func (h *hold) limit(timeout time.Duration) (stop func() bool) {
	return time.AfterFunc(timeout, func() { h.interrupt(verdict.ErrJobTimeout) }).Stop
}

// lost reports whether the job is not ours any more: nothing may be published.
func (h *hold) lost() bool { return verdict.Lost(context.Cause(h.ctx)) }

// extendLoop confirms the lease until it is lost or ctx ends. After a try that was not confirmed the next one comes sooner.
func (h *hold) extendLoop(ctx context.Context) {
	wait := h.timing.Heartbeat
	for {
		if !pause.For(ctx, wait) {
			return
		}
		began := time.Now()
		err := h.extend(ctx)
		if ctx.Err() != nil {
			return
		}
		h.observer.Heartbeat(err == nil)
		switch {
		case errors.Is(err, job.ErrLeaseLost):
			h.drop(job.ErrLeaseLost)
			return
		case err != nil:
			wait = h.timing.Heartbeat / 5
		default:
			// From the start of the call: the server may have answered at once, and the answer be late.
			if !h.fence.Reset(h.timing.Lease - time.Since(began)) {
				h.fence.Stop()
				return // the fence fell while the answer was on its way
			}
			wait = h.timing.Heartbeat
		}
	}
}

// confirm waits until the server says that the lease still stands, or ctx ends. After nil, this worker
// owned the job when the server answered.
func (h *hold) confirm(ctx context.Context) error {
	for {
		err := h.extend(ctx)
		if err == nil || errors.Is(err, job.ErrLeaseLost) {
			return err
		}
		if !pause.For(ctx, h.timing.Heartbeat/5) {
			return context.Cause(ctx)
		}
	}
}

func (h *hold) extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.timing.Heartbeat)
	defer cancel()
	return h.lease.Extend(ctx)
}

// cancelLoop passes on what users ask for.
func (h *hold) cancelLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case mode := <-h.lease.Canceled():
			if mode >= job.Abort {
				h.drop(verdict.ErrAborted)
				return
			}
			h.interrupt(verdict.ErrCanceled)
		}
	}
}

// stopGrace is how long a running command may react to TERM once the worker stops, whatever grace its step asks for.
const stopGrace = 10 * time.Second

// stopGraceFor is how long a box outlives the hold on its job, which ended for cause.
func stopGraceFor(cause error) time.Duration {
	if errors.Is(cause, verdict.ErrSoftStop) {
		return stopGrace
	}
	return 0
}
