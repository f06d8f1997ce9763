package runner

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"

	"slipway/container"
)

// The reaper's clocks.
const (
	reapInterval = 5 * time.Minute
	reapAge      = 5 * time.Minute // younger boxes may be on their way up or down
	reapTimeout  = time.Minute     // of one round
)

// reapLoop removes what dead workers left, at the start and then from time to time.
func (w *Worker) reapLoop(ctx context.Context) {
	for ctx.Err() == nil {
		err := recovered(func() error { return w.reap(ctx) })
		if err != nil && ctx.Err() == nil {
			w.log.Warn("reap", zap.Error(err))
		}
		pause(ctx, reapInterval)
	}
}

// reap is one round.
func (w *Worker) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	boxes, err := w.cfg.Provider.List(ctx, map[string]string{container.LabelProduct: container.Product})
	if err != nil {
		return err
	}
	reaped := 0
	for _, b := range boxes {
		why := reapable(b, w.cfg.Name, time.Now())
		if why == "" || w.live.has(b.Name) {
			continue
		}
		log := w.log.With(zap.String("box", b.Name), zap.String("why", why), zap.String("of_worker", b.Labels[container.LabelWorker]))
		if err := w.cfg.Provider.Remove(ctx, b.Name, container.RemoveVolumes); err != nil {
			log.Warn("reap box", zap.Error(err))
			continue
		}
		reaped++
		log.Info("box reaped")
	}
	if reaped > 0 {
		w.cfg.Observer.Reaped(reaped)
	}
	return nil
}

// removeEarlier removes what earlier attempts of the job left on this engine. The
// lease is ours, so whatever runs there has lost it; and a box whose worker died between its
// making and its start has no process 1 that could end it.
func (a *attempt) removeEarlier(ctx context.Context) error {
	boxes, err := a.w.cfg.Provider.List(ctx, map[string]string{
		container.LabelProduct: container.Product, container.LabelJob: string(a.d.ID),
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range boxes {
		fence, err := strconv.ParseUint(b.Labels[container.LabelFence], 10, 64)
		if err != nil || fence >= a.d.Fence || a.w.live.has(b.Name) {
			continue
		}
		if err := a.w.cfg.Provider.Remove(ctx, b.Name, container.RemoveVolumes); err != nil {
			errs = append(errs, err)
			continue
		}
		a.log.Info("box of an earlier attempt removed", zap.String("box", b.Name), zap.String("of_worker", b.Labels[container.LabelWorker]))
	}
	return errors.Join(errs...)
}

// reapable says why a box that no attempt of this worker owns may be removed, or
// "" if it may not. A running box of another worker belongs to it until its label says that it
// can't: the dead-man switch ends it sooner if that worker is dead. One of this worker is
// what a teardown of its own could not remove.
func reapable(b container.Info, me string, now time.Time) string {
	expires, err := strconv.ParseInt(b.Labels[container.LabelExpires], 10, 64)
	switch {
	case err == nil && now.Unix() > expires:
		return "expired"
	case b.CreatedAt.IsZero() || now.Sub(b.CreatedAt) < reapAge:
		return ""
	case b.State == container.StateCreated:
		return "never started"
	case b.State == container.StateExited:
		return "exited"
	case b.Labels[container.LabelWorker] == me:
		return "left over"
	}
	return ""
}
