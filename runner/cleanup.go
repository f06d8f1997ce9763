package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// teardown is what must be undone at the end of an attempt. A step is registered
// before the setup that it undoes, so it must be safe after a setup that failed half way.
// The steps run once, the last one first, each even if the one before failed or
// panicked. All methods are safe for concurrent use.
type teardown struct {
	mu    sync.Mutex
	steps []func(context.Context) error
	begun bool
	done  chan struct{}
}

func newTeardown() *teardown { return &teardown{done: make(chan struct{})} }

// add registers a step. It must not be called after run.
func (t *teardown) add(step func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, step)
}

// begin reports whether the caller is the one who has to run the steps.
func (t *teardown) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.begun
	t.begun = true
	return first
}

// run does the steps and returns their errors. Only the one to whom begin said true may call it.
func (t *teardown) run(ctx context.Context) error {
	defer close(t.done)
	var errs []error
	for i := len(t.steps) - 1; i >= 0; i-- {
		errs = append(errs, recovered(func() error { return t.steps[i](ctx) }))
	}
	return errors.Join(errs...)
}

// panicError is a panic that was caught on its way out of an attempt.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recovered calls fn and turns a panic into a *panicError.
func recovered(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
		}
	}()
	return fn()
}

// The delays between two tries to remove a box.
const (
	removeBackoff    = 250 * time.Millisecond
	maxRemoveBackoff = 5 * time.Second
)

// persist calls remove until it works or ctx ends: an engine that restarts is
// back within seconds, and a box that is given up stays.
func persist(ctx context.Context, remove func(context.Context) error) error {
	delay := removeBackoff
	for {
		err := remove(ctx)
		if err == nil {
			return nil
		}
		pause(ctx, delay)
		if ctx.Err() != nil {
			return err
		}
		delay = min(2*delay, maxRemoveBackoff)
	}
}

// clean runs the attempt's teardown, counts it, and waits for its end. It may be
// called more than once, and while another call is under way.
func (a *attempt) clean(ctx context.Context) {
	if !a.undo.begin() {
		<-a.undo.done
		return
	}
	cleanupCtx, cancel := a.w.bounded(ctx, a.w.cfg.CleanupTimeout, killCleanup)
	defer cancel()
	began := time.Now()
	err := a.undo.run(cleanupCtx)
	a.w.live.remove(a.boxName)
	a.obs.PhaseDone(phaseCleanup, time.Since(began), err == nil)
	if err != nil {
		a.obs.Leftover()
		a.log.Error("remove box: something may be left on the engine", zap.String("box", a.boxName), zap.Error(err))
	}
}
