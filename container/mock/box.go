package mock

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"slipway/container"
)

// sandbox is one box in memory. It is a container.Sandbox.
type sandbox struct {
	p       *Provider
	spec    container.Spec
	id      string
	made    time.Time
	disk    *disk
	done    chan struct{}
	running sync.WaitGroup // commands

	mu      sync.Mutex
	state   container.State
	why     error // what methods return after the end
	removed bool
}

var _ container.Sandbox = (*sandbox)(nil)

func newBox(p *Provider, spec container.Spec, id string) *sandbox {
	spec.Labels = maps.Clone(spec.Labels) // an engine keeps what it was sent, not what the caller writes later
	return &sandbox{
		p: p, spec: spec, id: id, made: time.Now(), disk: newDisk(spec.Resources.Disk),
		done: make(chan struct{}), state: container.StateCreated,
	}
}

// Start starts the box. See container.Sandbox.
func (b *sandbox) Start(ctx context.Context) error {
	b.p.record(OnStart, b.spec.Name, "")
	fault, err := b.p.fault(ctx, OnStart)
	if err != nil && !fault.Happened {
		return fmt.Errorf("start box %s: %w", b.spec.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != container.StateCreated {
		b.p.misuse("box %s is started as %s", b.spec.Name, b.state)
		return fmt.Errorf("start box %s: %w", b.spec.Name, container.ErrStopped)
	}
	b.state = container.StateRunning
	if err != nil {
		return fmt.Errorf("start box %s: %w", b.spec.Name, err)
	}
	return nil
}

// enter counts a command or file operation in while the box runs; else it says why it does not.
func (b *sandbox) enter(doing string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == container.StateRunning:
		b.running.Add(1)
		return nil
	case b.state == container.StateCreated:
		b.p.misuse("box %s: %s before its start", b.spec.Name, doing)
		return fmt.Errorf("box %s: %w", b.spec.Name, container.ErrStopped)
	case b.removed:
		b.p.misuse("box %s: %s after its removal", b.spec.Name, doing)
		return fmt.Errorf("box %s: %w", b.spec.Name, container.ErrStopped)
	}
	return b.ended()
}

// ended is the error of a box that has ended. The caller holds mu, or saw done closed.
func (b *sandbox) ended() error { return fmt.Errorf("box %s: %w", b.spec.Name, b.why) }

// die ends the box. The first reason stays.
func (b *sandbox) die(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == container.StateExited {
		return
	}
	b.state, b.why = container.StateExited, why
	close(b.done)
}

// Files gives access to the workspace. See container.Sandbox.
func (b *sandbox) Files() container.Files { return files{b} }

// Done is closed when the box has ended. See container.Sandbox.
func (b *sandbox) Done() <-chan struct{} { return b.done }

// Info describes the box. See container.Sandbox.
func (b *sandbox) Info() container.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	labels := maps.Clone(b.spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[container.LabelProduct] = container.Product
	labels[container.LabelBox] = b.spec.Name
	return container.Info{ID: b.id, Name: b.spec.Name, State: b.state, Labels: labels, CreatedAt: b.made, Workdir: b.spec.Workdir}
}

// Stop ends all commands and the box. See container.Sandbox.
func (b *sandbox) Stop(ctx context.Context, _ time.Duration) error {
	b.p.record(OnStop, b.spec.Name, "")
	if _, err := b.p.fault(ctx, OnStop); err != nil {
		return fmt.Errorf("stop box %s: %w", b.spec.Name, err)
	}
	b.die(container.ErrStopped)
	b.running.Wait()
	return nil
}

// Remove destroys the box. See container.Sandbox.
func (b *sandbox) Remove(ctx context.Context, _ ...container.RemoveOption) error {
	b.p.record(OnRemove, b.spec.Name, "")
	if _, err := b.p.fault(ctx, OnRemove); err != nil {
		return fmt.Errorf("remove box %s: %w", b.spec.Name, err)
	}
	b.die(container.ErrStopped)
	b.mu.Lock()
	b.removed = true
	b.mu.Unlock()
	b.running.Wait()
	b.p.drop(b)
	return nil
}
