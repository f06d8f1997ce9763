package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway/job"
)

// keeper keeps a lease alive, and says so when it is lost. It has two loops: one
// extends, and a clock of its own watches, so that an extension that hangs can't hide
// that the lease is over.
type keeper struct {
	lease     job.Lease
	timing    job.Timing
	obs       Observer
	drop      context.CancelCauseFunc // ends everything of the attempt
	interrupt context.CancelCauseFunc // ends the step that runs

	fence *time.Timer
	quit  context.CancelFunc
	done  sync.WaitGroup
}

// startKeeper starts the loops. claimed is when the lease was confirmed first.
func startKeeper(holdCtx context.Context, lease job.Lease, timing job.Timing, claimed time.Time, obs Observer,
	drop, interrupt context.CancelCauseFunc,
) *keeper {
	k := &keeper{lease: lease, timing: timing, obs: obs, drop: drop, interrupt: interrupt}
	// Not holdCtx's end: a box that is removed after a soft stop is still covered by the lease.
	ctx, quit := context.WithCancel(context.WithoutCancel(holdCtx))
	k.quit = quit
	k.fence = time.AfterFunc(timing.Lease-time.Since(claimed), func() { drop(errSelfFenced) })
	k.done.Go(func() {
		if err := recovered(func() error { k.extendLoop(ctx); return nil }); err != nil {
			drop(err)
		}
	})
	k.done.Go(func() { k.cancelLoop(ctx) })
	return k
}

// stop ends the loops and waits for them. It may be called more than once.
func (k *keeper) stop() {
	k.quit()
	k.fence.Stop()
	k.done.Wait()
}

// extendLoop confirms the lease until it is lost or ctx ends. After a try that
// was not confirmed the next one comes sooner.
func (k *keeper) extendLoop(ctx context.Context) {
	wait := k.timing.Heartbeat
	for {
		pause(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		err := k.extend(ctx)
		if ctx.Err() != nil {
			return
		}
		k.obs.Heartbeat(err == nil)
		switch {
		case errors.Is(err, job.ErrLeaseLost):
			k.drop(job.ErrLeaseLost)
			return
		case err != nil:
			wait = k.timing.Heartbeat / 5
		default:
			// From the start of the call: the server may have answered at once, and the answer be late.
			if !k.fence.Reset(k.timing.Lease - time.Since(began)) {
				k.fence.Stop()
				return // the fence fell while the answer was on its way
			}
			wait = k.timing.Heartbeat
		}
	}
}

// confirm waits until the server says that the lease still stands, or ctx ends.
// What is done right after it is done by the owner of the job, or by nobody.
func (k *keeper) confirm(ctx context.Context) error {
	for {
		err := k.extend(ctx)
		if err == nil || errors.Is(err, job.ErrLeaseLost) {
			return err
		}
		if pause(ctx, k.timing.Heartbeat/5); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (k *keeper) extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.timing.Heartbeat)
	defer cancel()
	return k.lease.Extend(ctx)
}

// cancelLoop passes on what users ask for.
func (k *keeper) cancelLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case mode := <-k.lease.Canceled():
			if mode >= job.Abort {
				k.drop(errAborted)
				return
			}
			k.interrupt(errCanceled)
		}
	}
}
