package box

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/internal/pause"
	"slipway/runner/internal/panics"
)

// CreateTimeout is the deadline that a caller of Start should set.
const CreateTimeout = 2 * time.Minute

// expirySlack is how much later than its lifetime a box counts as expired: clocks of two hosts with one engine differ.
const expirySlack = 5 * time.Minute

// Box is one box of an owner, from before it is made until nothing of it is left. Start is called at most once, and not after
// Remove. Name, Watch, Sandbox and Remove may be called at any time, also before Start, from any goroutine.
type Box struct {
	fleet *Fleet
	owner Owner
	log   *zap.Logger

	mu      sync.Mutex
	asked   bool              // the engine was asked for it: it may be there
	sandbox container.Sandbox // nil until it was made
	removed bool              // its removal has begun
	gone    chan struct{}     // closed when its removal has ended, well or not
}

// Start makes the box and starts it. name, labels and expiry of spec are the owner's. From here on Remove has something
// to do, whatever Start returns: an engine that answers too late may have made the box all the same.
func (b *Box) Start(ctx context.Context, spec container.Spec) error {
	b.fleet.add(b.owner.Name) // before the engine is asked, so that no reaper takes it
	b.mu.Lock()
	b.asked = true
	b.mu.Unlock()
	if b.owner.Fence > 1 {
		if err := b.fleet.removeEarlier(ctx, b.owner); err != nil {
			b.log.Warn("remove the boxes of earlier owners", zap.Error(err)) // the reaper does it
		}
	}
	spec.Name, spec.Labels = b.owner.Name, b.fleet.labels(b.owner)
	spec.Labels[container.LabelExpires] = strconv.FormatInt(time.Now().Add(spec.Lifetime+expirySlack).Unix(), 10)
	sandbox, err := b.fleet.cfg.Provider.Create(ctx, spec)
	if err != nil {
		return err // it names the box
	}
	b.mu.Lock()
	b.sandbox = sandbox
	b.mu.Unlock()
	return sandbox.Start(ctx)
}

// Name is the owner's name for the box.
func (b *Box) Name() string { return b.owner.Name }

// Sandbox is the box itself, nil before it was made.
func (b *Box) Sandbox() container.Sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sandbox
}

// Watch removes the box as soon as hold has ended, without waiting for the grace of what runs in it; or a while later, if
// grace says so for the cause of the end, or sooner again when hurry is closed. stop ends the watch and waits for it.
func (b *Box) Watch(hold context.Context, grace func(cause error) time.Duration, hurry <-chan struct{}) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case <-hold.Done():
		}
		if d := grace(context.Cause(hold)); d > 0 {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-done:
				return
			case <-timer.C:
			case <-hurry:
			}
		}
		if b.Sandbox() != nil { // else its making is under way: it meets the same end of hold, and its owner removes it
			b.Remove(hold)
		}
	})
	return func() { close(done); wg.Wait() }
}

// Remove removes the box, if the engine was ever asked for it, and waits for the end of that. It may be called more than
// once, and while another call is under way. It outlives ctx as Config.Cleanup says.
func (b *Box) Remove(ctx context.Context) {
	if !b.begin() {
		<-b.gone
		return
	}
	defer close(b.gone)
	ctx, cancel := b.fleet.cfg.Cleanup(ctx)
	defer cancel()
	began := time.Now()
	err := panics.Catch(func() error { return b.persist(ctx) })
	b.fleet.forget(b.owner.Name)
	b.fleet.cfg.Removed(time.Since(began), err)
	if err != nil {
		b.log.Error("remove box: something may be left on the engine", zap.Error(err))
	}
}

// begin reports whether the caller is the one who has to remove the box.
func (b *Box) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !b.removed
	b.removed = true
	return first
}

// The delays between two tries to remove a box.
const (
	removeBackoff    = 250 * time.Millisecond
	maxRemoveBackoff = 5 * time.Second
)

// persist removes the box until it works or ctx ends: an engine that restarts is back within seconds, and a box that is
// given up stays.
func (b *Box) persist(ctx context.Context) error {
	delay := removeBackoff
	for {
		err := b.remove(ctx)
		if err == nil {
			return nil
		}
		if !pause.For(ctx, delay) {
			return err
		}
		delay = min(2*delay, maxRemoveBackoff)
	}
}

func (b *Box) remove(ctx context.Context) error {
	b.mu.Lock()
	asked, sandbox := b.asked, b.sandbox
	b.mu.Unlock()
	switch {
	case sandbox != nil:
		return sandbox.Remove(ctx, container.RemoveVolumes)
	case asked:
		return b.fleet.cfg.Provider.Remove(ctx, b.owner.Name, container.RemoveVolumes)
	}
	return nil
}
