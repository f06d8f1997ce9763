package box

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/container"
)

// Config is what a Fleet works with.
type Config struct {
	Provider container.Provider
	// Worker is the name of the worker, for people. Whose a box is says a random id, which NewFleet makes.
	Worker string
	Log    *zap.Logger
	// Cleanup makes the context of one removal: it must outlive ctx, and end some time.
	Cleanup func(ctx context.Context) (context.Context, context.CancelFunc)
	// Removed is told of the end of each removal. With an error something may be left on the engine.
	Removed func(took time.Duration, err error)
}

// Fleet is all boxes of one worker. It is safe for concurrent use.
type Fleet struct {
	cfg Config

	self identity

	mu   sync.Mutex
	live map[string]bool // by name
}

// NewFleet makes a Fleet without boxes.
func NewFleet(cfg Config) *Fleet {
	return &Fleet{cfg: cfg, self: newIdentity(), live: map[string]bool{}}
}

// Owner says whose a box is.
type Owner struct {
	// Name is the box's. It is never given twice, so a box of that name is this owner's or nobody's.
	Name string
	// Key is the label, and its value, that all boxes of the same thing carry, such as those of all attempts of one job.
	Key, Value string
	// Labels are further ones, for people.
	Labels map[string]string
	// Fence grows from owner to owner of the same Key and Value. From 2 on, boxes with a lower one are removed first.
	Fence uint64
}

// Box is the handle of the owner's box. Nothing is made yet.
func (f *Fleet) Box(o Owner) *Box {
	return &Box{fleet: f, owner: o, log: f.cfg.Log.With(zap.String("box", o.Name)), gone: make(chan struct{})}
}

// labels returns the labels of the owner's box. Start adds the expiry.
func (f *Fleet) labels(o Owner) map[string]string {
	labels := f.self.labels()
	labels[container.LabelProduct] = container.Product
	labels[container.LabelWorker] = f.cfg.Worker
	labels[container.LabelFence] = strconv.FormatUint(o.Fence, 10)
	labels[o.Key] = o.Value
	maps.Copy(labels, o.Labels)
	return labels
}

func (f *Fleet) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[name] = true
}

func (f *Fleet) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, name)
}

// isLive reports whether an owner in this process still has the box of that name.
func (f *Fleet) isLive(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live[name]
}

// allLive returns the names of all boxes that have an owner in this process now.
func (f *Fleet) allLive() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.live)
}

// removeEarlier removes what earlier owners left on this engine. The fence is this owner's, so whatever runs there has
// lost the right to; and a box whose worker died between its making and its start has no process 1 that could end it.
func (f *Fleet) removeEarlier(ctx context.Context, o Owner) error {
	boxes, err := f.cfg.Provider.List(ctx, map[string]string{container.LabelProduct: container.Product, o.Key: o.Value})
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range boxes {
		fence, err := strconv.ParseUint(b.Labels[container.LabelFence], 10, 64)
		if err != nil || fence >= o.Fence || f.isLive(b.Name) {
			continue
		}
		if err := f.cfg.Provider.Remove(ctx, b.Name, container.RemoveVolumes); err != nil {
			errs = append(errs, err)
			continue
		}
		f.cfg.Log.Info("box of an earlier owner removed", zap.String("box", b.Name), zap.String(o.Key, o.Value),
			zap.String("of_worker", b.Labels[container.LabelWorker]))
	}
	return errors.Join(errs...)
}
