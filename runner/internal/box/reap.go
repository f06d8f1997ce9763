package box

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"slipway/container"
)

// reapAge is how old a box must be: younger ones may be on their way up or down.
const reapAge = 5 * time.Minute

// Reap is one round of removing what dead workers left. It returns how many boxes it removed.
func (f *Fleet) Reap(ctx context.Context) (reaped int, err error) {
	boxes, err := f.cfg.Provider.List(ctx, map[string]string{container.LabelProduct: container.Product})
	if err != nil {
		return 0, err
	}
	for _, b := range boxes {
		why := reapable(b, f.cfg.Worker, time.Now())
		if why == "" || f.isLive(b.Name) {
			continue
		}
		log := f.cfg.Log.With(zap.String("box", b.Name), zap.String("why", why), zap.String("of_worker", b.Labels[container.LabelWorker]))
		if err := f.cfg.Provider.Remove(ctx, b.Name, container.RemoveVolumes); err != nil {
			log.Warn("reap box", zap.Error(err))
			continue
		}
		reaped++
		log.Info("box reaped")
	}
	return reaped, nil
}

// reapable says why a box without an owner in this process may be removed, or "" if it may not. A running box of another
// worker belongs to it until its label says that it can't: the dead-man switch ends it sooner if that worker is dead. One
// of this worker is what a removal of its own could not remove.
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
