package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/internal/hint"
)

const (
	promptTime = time.Second
	// leaveTime is how long a box that was told to end may go without working before it counts as stuck: frozen, such as
	// by docker pause, or hung in the kernel.
	leaveTime = 10 * time.Second
	// leastWork is what a box uses of a processor in leaveTime if it wipes. On a disk that twelve others kept busy it
	// were 350 ms; a supervisor that only waits needs 1 ms.
	leastWork = 20 * time.Millisecond
	// forceTime is kept for the removal of a box that does not end in time.
	forceTime = 20 * time.Second
)

var errStays = errors.New("the box was told to end and stays")

// Create makes a box. See container.Provider.
func (p *Provider) Create(ctx context.Context, spec container.Spec) (container.Sandbox, error) {
	spec, err := spec.WithDefaults()
	if err != nil {
		return nil, err
	}
	if spec.Image == "" {
		return nil, fmt.Errorf("%w: image: is empty", container.ErrSpec)
	}
	if _, err := parsePlatform(spec.Platform); err != nil {
		return nil, err
	}
	b := newBox(p, spec)
	if err := b.create(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// create makes the container of b, once more if the engine did not find the hosts file on the supervisor's volume.
func (b *sandbox) create(ctx context.Context) error {
	err := b.createOnce(ctx)
	if err == nil || ctx.Err() != nil || !errdefs.IsInvalidArgument(err) {
		return err
	}
	if again := b.p.delivery.redeliver(ctx); again != nil {
		return errors.Join(err, again)
	}
	return b.createOnce(ctx)
}

func (b *sandbox) createOnce(ctx context.Context) error {
	at, err := b.p.delivery.delivered(ctx)
	if err != nil {
		return err
	}
	req, err := createRequest(b.spec, at)
	if err != nil {
		return err
	}
	if err := b.p.enter(ctx); err != nil {
		return err
	}
	defer b.p.leave()
	id, err := b.p.createContainer(ctx, req)
	switch {
	case errdefs.IsConflict(err):
		if err = b.p.removeGhost(ctx, b.spec.Name); err == nil {
			id, err = b.p.createContainer(ctx, req)
		}
	case errdefs.IsNotFound(err):
		// It can only be the image: an engine makes a volume that a create names.
		return hint.With(fmt.Errorf("create box %s: %w: %s", b.spec.Name, container.ErrImageNotFound, b.spec.Image), "call Prepare first")
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.info.ID = id
	b.info.CreatedAt = time.Now()
	b.mu.Unlock()
	return nil
}

// createContainer makes the container. If the call seems to fail it removes the container that the engine may have
// made all the same. The request is not canceled when ctx ends: the engine would go on, and its container would
// appear at an unknown time. So the answer is waited for, and the container removed.
func (p *Provider) createContainer(ctx context.Context, req client.ContainerCreateOptions) (id string, err error) {
	if ctx.Err() != nil {
		return "", fmt.Errorf("create box %s: %w", req.Name, context.Cause(ctx))
	}
	err = p.call(context.WithoutCancel(ctx), "create box "+req.Name, createTimeout, func(ctx context.Context) error {
		res, err := p.cli.ContainerCreate(ctx, req)
		id = res.ID
		return err
	})
	clean, cancel := detached(ctx, inspectTimeout+removeTimeout)
	defer cancel()
	switch {
	case err == nil && ctx.Err() != nil:
		return "", errors.Join(fmt.Errorf("create box %s: %w", req.Name, context.Cause(ctx)), p.destroy(clean, id))
	case err == nil || errdefs.IsConflict(err) || errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err):
		return id, err
	}
	return "", errors.Join(err, p.removeGhost(clean, req.Name))
}

// removeGhost removes the box called name unless it runs, or belongs to somebody else.
func (p *Provider) removeGhost(ctx context.Context, name string) error {
	c, err := p.inspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case !ours(c):
		return fmt.Errorf("create box %s: %w: a container of that name that is not slipway's", name, container.ErrExists)
	case stateOf(c.State.Status) == container.StateRunning:
		return fmt.Errorf("create box %s: %w and runs", name, container.ErrExists)
	}
	return p.destroy(ctx, c.ID)
}

// Remove destroys the box called name, and what was made for it. See container.Provider.
func (p *Provider) Remove(ctx context.Context, name string, _ ...container.RemoveOption) error {
	c, err := p.inspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
	case err != nil:
		return err
	case !ours(c):
		return fmt.Errorf("remove box %s: %w: a container of that name is not slipway's", name, container.ErrNotFound)
	default:
		if err := p.removeContainer(ctx, c); err != nil {
			return err
		}
	}
	if err := p.left.remove(ctx, name); err != nil {
		return fmt.Errorf("remove box %s: %w", name, err)
	}
	return nil
}

// removeContainer tells the box to end, and removes what does not go by itself.
func (p *Provider) removeContainer(ctx context.Context, c mobycontainer.InspectResponse) error {
	if stateOf(c.State.Status) == container.StateRunning {
		err := p.call(ctx, "end box "+c.Name, killTimeout, func(ctx context.Context) error {
			_, err := p.cli.ContainerKill(ctx, c.ID, client.ContainerKillOptions{Signal: "SIGTERM"})
			return err
		})
		if err == nil && p.leftByItself(ctx, c.ID) == nil {
			return nil
		}
	}
	return p.destroyInTurn(ctx, c.ID)
}

// leftByItself returns nil once a box that was told to end has ended and is
// removed. The first second, in which most boxes go, counts as a lifecycle call. A box that has much to
// wipe then waits outside, so that it does not hold up the others: as long as it works, and ctx leaves time to remove it
// by force. A kill would end the one process that gets a tree away that is too deep for the engine.
func (p *Provider) leftByItself(ctx context.Context, id string) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	err := p.waitGone(ctx, id, promptTime)
	p.leave()
	if err == nil {
		return nil
	}
	return awaitWork(ctx,
		func(ctx context.Context, limit time.Duration) error { return p.waitGone(ctx, id, limit) },
		func(ctx context.Context) time.Duration { return p.cpuTime(ctx, id) })
}

// awaitWork returns nil once the box is gone, and an error as soon as it has not worked for leaveTime, or ctx leaves too little
// time for another look. gone waits for the end of the box for so long, worked tells how much it has worked so far.
func awaitWork(ctx context.Context, gone func(context.Context, time.Duration) error, worked func(context.Context) time.Duration) error {
	for before := worked(ctx); ; {
		if gone(ctx, leaveTime) == nil {
			return nil
		}
		now := worked(ctx)
		if end, bounded := ctx.Deadline(); now-before < leastWork || bounded && time.Until(end) < leaveTime+forceTime {
			return errStays
		}
		before = now
	}
}

// cpuTime tells for how long the box has used a processor so far, 0 if the engine does not say.
func (p *Provider) cpuTime(ctx context.Context, id string) time.Duration {
	var stats mobycontainer.StatsResponse
	_ = p.call(ctx, "ask how long box "+id+" has worked", inspectTimeout, func(ctx context.Context) error {
		res, err := p.cli.ContainerStats(ctx, id, client.ContainerStatsOptions{})
		if err != nil {
			return err
		}
		return errors.Join(json.NewDecoder(res.Body).Decode(&stats), res.Body.Close())
	})
	return time.Duration(stats.CPUStats.CPUUsage.TotalUsage)
}

func (p *Provider) destroyInTurn(ctx context.Context, id string) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.leave()
	return p.destroy(ctx, id)
}
