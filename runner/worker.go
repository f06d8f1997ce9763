package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"slipway/internal/pause"
	"slipway/job"
	"slipway/runner/internal/box"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
	wsync "slipway/sync"
)

// ErrRunTwice means that Run was called before. Make a new Worker.
var ErrRunTwice = errors.New("this worker ran already")

// After Kill this much time is left to destroy the boxes, and then to give the jobs back. Later the boxes' dead-man
// switch and the end of the leases do the rest.
const (
	killCleanup = 3 * time.Second
	killSettle  = 5 * time.Second
)

// fetchBackoff is the delay after an error of Consumer.Next that its contract does not name. It doubles up to
// maxFetchBackoff.
const (
	fetchBackoff    = time.Second
	maxFetchBackoff = 30 * time.Second
)

// Worker takes jobs from a queue and runs each in a box of its own. Make one
// with New, call Run once. Several workers can live in one process.
type Worker struct {
	cfg    Config
	log    *zap.Logger
	syncer *wsync.Syncer // nil without a store
	boxes  *box.Fleet
	engine *engine

	started atomic.Bool
	kill    sync.Once
	killed  chan struct{}
	busy    atomic.Int64
}

// New copies cfg, fills the defaults and validates it. It does no I/O and starts
// nothing. Its error names the field.
func New(cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg:    cfg,
		log:    cfg.Logger.With(zap.String("worker", cfg.Name)),
		killed: make(chan struct{}),
	}
	w.engine = &engine{check: cfg.Provider.Check, log: w.log}
	if cfg.Store != nil {
		w.syncer = wsync.New(cfg.Store, wsync.Options{})
	}
	return w, nil
}

// Name returns the worker's name, which New made up if the Config had none.
func (w *Worker) Name() string { return w.cfg.Name }

// Run works until ctx ends: then nothing is fetched any more, running attempts
// go on for Config.SoftStop, then they are canceled and their jobs given back at
// no cost. Run returns nil when the last box is gone and no goroutine of the worker is left.
//
// Run returns an error only if the worker itself can't go on, such as when it has no rights on the queue; it stops softly
// first. A second call returns ErrRunTwice. A job that fails is a Result, not an error.
func (w *Worker) Run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return ErrRunTwice
	}
	w.boxes = box.NewFleet(box.Config{
		Provider: w.cfg.Provider, Worker: w.cfg.Name, Log: w.log, Removed: w.boxRemoved,
		Cleanup: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return w.bounded(ctx, w.cfg.CleanupTimeout, killCleanup)
		},
	})
	fetchCtx, stopFetch := context.WithCancelCause(ctx)
	defer stopFetch(nil)
	rootCtx, cancelWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelWork(nil)

	var all sync.WaitGroup
	w.cfg.Observer.Slots(w.cfg.Slots, 0)
	w.log.Info("worker started", zap.Int("slots", w.cfg.Slots))
	for range w.cfg.Slots {
		all.Go(func() {
			if err := w.slot(fetchCtx, rootCtx); err != nil {
				stopFetch(&fetchError{err})
			}
		})
	}
	all.Go(func() { w.reapLoop(fetchCtx) })
	idle := make(chan struct{})
	go func() { all.Wait(); close(idle) }() // ends before Run does: stop waits for idle

	w.stop(fetchCtx, idle, stopFetch, cancelWork)
	if err, ok := errors.AsType[*fetchError](context.Cause(fetchCtx)); ok { // also if somebody stopped the worker since
		return fmt.Errorf("run worker %s: %w", w.cfg.Name, err.cause)
	}
	return nil
}

// fetchError ends the fetching: the queue can't work at all.
type fetchError struct{ cause error }

func (e *fetchError) Error() string { return e.cause.Error() }

// Kill ends Run as fast as it can be done: running boxes are destroyed at once,
// without grace, and their jobs given back. Run then returns within fifteen seconds, also if neither the engine nor the queue
// answers. A second SIGTERM should call Kill. It does not wait, and may be called at any time, from any goroutine, more than once.
func (w *Worker) Kill() { w.kill.Do(func() { close(w.killed) }) }

// stop waits for the reason to stop, and then takes the two steps of stopping.
func (w *Worker) stop(fetchCtx context.Context, idle <-chan struct{}, stopFetch, cancelWork context.CancelCauseFunc) {
	select {
	case <-fetchCtx.Done():
	case <-w.killed:
	}
	stopFetch(verdict.ErrKilled) // no effect if it ended for another reason
	w.cfg.Observer.Draining()
	w.log.Info("worker stops fetching", zap.Duration("soft_stop", w.cfg.SoftStop), zap.NamedError("cause", context.Cause(fetchCtx)))

	soft := time.NewTimer(max(w.cfg.SoftStop, 0))
	defer soft.Stop()
	select {
	case <-idle:
	case <-soft.C:
		cancelWork(verdict.ErrSoftStop)
	case <-w.killed:
		cancelWork(verdict.ErrKilled)
	}
	<-idle
	w.log.Info("worker stopped")
}

// slot runs one attempt after the other. It returns an error if the queue can't
// work at all, and nil when fetchCtx ended.
func (w *Worker) slot(fetchCtx, rootCtx context.Context) error {
	delay := fetchBackoff
	for fetchCtx.Err() == nil {
		w.engine.wait(fetchCtx)
		lease, err := w.cfg.Queue.Next(fetchCtx)
		switch {
		case err == nil:
			delay = fetchBackoff
			w.countBusy(1)
			w.serve(rootCtx, lease)
			w.countBusy(-1)
		case fetchCtx.Err() != nil:
			return nil
		case errors.Is(err, job.ErrUnavailable), errors.Is(err, job.ErrNotSetUp):
			return fmt.Errorf("fetch job: %w", err)
		default:
			w.log.Error("fetch job", zap.Error(err), zap.Duration("retry_in", delay))
			pause.For(fetchCtx, delay)
			delay = min(2*delay, maxFetchBackoff)
		}
	}
	return nil
}

func (w *Worker) countBusy(delta int64) {
	w.cfg.Observer.Slots(w.cfg.Slots, int(w.busy.Add(delta)))
}

// bounded returns a context that outlives ctx: it ends after limit, and left after a call of Kill.
func (w *Worker) bounded(ctx context.Context, limit, left time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-out.Done():
			return
		case <-w.killed:
		}
		pause.For(out, left)
		cancel()
	})
	return out, func() { cancel(); watch.Wait() }
}

// The reaper's clocks.
const (
	reapInterval = 30 * time.Second
	reapTimeout  = 5 * time.Minute // of one round
)

// reapLoop removes what dead workers left, at the start and then from time to time.
func (w *Worker) reapLoop(ctx context.Context) {
	for ctx.Err() == nil {
		err := panics.Catch(func() error { return w.reap(ctx) })
		if err != nil && ctx.Err() == nil {
			w.log.Warn("reap", zap.Error(err))
		}
		pause.For(ctx, reapInterval)
	}
}

// reap is one round.
func (w *Worker) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	reaped, left, err := w.boxes.Reap(ctx)
	if reaped > 0 {
		w.cfg.Observer.Reaped(reaped)
	}
	for range left {
		w.cfg.Observer.Leftover()
	}
	return err
}

// boxRemoved counts the end of a box.
func (w *Worker) boxRemoved(took time.Duration, err error) {
	w.cfg.Observer.PhaseDone(phaseCleanup, took, err == nil)
	if err != nil {
		w.cfg.Observer.Leftover()
	}
}
