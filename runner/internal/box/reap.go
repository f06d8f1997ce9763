package box

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"slipway/container"
)

const (
	// reapAge is how old a box must be whose worker may live: younger ones may be on their way up or down.
	reapAge = 5 * time.Minute
	// orphanAge is the same for a box of a worker that has ended: the engine may still be making it.
	orphanAge = 30 * time.Second
	// reapLimit bounds one removal, so that a box that does not go holds up no other one for long.
	reapLimit = time.Minute
)

// Reap is one round of removing what dead workers left: boxes, and what is left of boxes. It returns how many it removed, and
// how many it should have removed and could not, each of which it logs. An error says that it could not look.
func (f *Fleet) Reap(ctx context.Context) (reaped, left int, err error) {
	had := f.allLive() // what is removed by its owner while this round looks is not reaped
	boxes, err := f.cfg.Provider.List(ctx, map[string]string{container.LabelProduct: container.Product})
	if err != nil {
		return 0, 0, err
	}
	for _, b := range boxes {
		why := f.reapable(b, time.Now())
		if why == "" || had[b.Name] || f.isLive(b.Name) {
			continue
		}
		log := f.cfg.Log.With(zap.String("box", b.Name), zap.String("why", why), zap.String("of_worker", b.Labels[container.LabelWorker]))
		if err := f.reap(ctx, b.Name); err != nil {
			log.Warn("reap box: something is left on the engine", zap.Error(err))
			left++
			continue
		}
		reaped++
		log.Info("box reaped")
	}
	return reaped, left, nil
}

func (f *Fleet) reap(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, reapLimit)
	defer cancel()
	return f.cfg.Provider.Remove(ctx, name, container.RemoveVolumes)
}

// reapable says why a box that is not live may be removed, or "" if it may not.
//
// A box that runs is removed only if its worker is this one, which could not remove it before, or has certainly ended, or if
// the box's time is over. Any other one ends by itself when its worker is gone: the dead-man switch needs nobody. A box that
// does not run does nothing for anybody, so its age is enough, whoever made it.
func (f *Fleet) reapable(b container.Info, now time.Time) string {
	if expires, err := strconv.ParseInt(b.Labels[container.LabelExpires], 10, 64); err == nil && now.Unix() > expires {
		return "expired"
	}
	if f.self.owns(b.Labels) {
		return "left over"
	}
	if b.CreatedAt.IsZero() {
		return ""
	}
	age := now.Sub(b.CreatedAt)
	switch {
	case age >= orphanAge && f.self.dead(b.Labels):
		return "its worker has ended"
	case age < reapAge:
		return ""
	case b.State == container.StateCreated:
		return "never started"
	case b.State == container.StateExited:
		return "exited"
	case b.State == container.StateRemains:
		return "its box is gone"
	}
	return ""
}
