package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/internal/pause"
)

const (
	removeTries = 3
	removePause = 200 * time.Millisecond
	pollGone    = 10 * time.Millisecond
)

// destroy kills and removes a container with its anonymous volumes, and returns
// when it is really gone: an engine answers "in progress" to all but the first of
// several removals, and forgets the container at the end of it.
func (a api) destroy(ctx context.Context, id string) error {
	var err error
	for range removeTries {
		err = a.call(ctx, "remove box "+id, removeTimeout, func(ctx context.Context) error {
			_, err := a.cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			return err
		})
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err == nil || errdefs.IsConflict(err) {
			if err = a.waitGone(ctx, id, removeTimeout); err == nil {
				return nil
			}
		}
		if !pause.For(ctx, removePause) {
			return err
		}
	}
	return err
}

// waitGone returns nil once the engine does not know the container any more.
func (a api) waitGone(ctx context.Context, id string, limit time.Duration) error {
	err := a.call(ctx, "wait for the end of box "+id, limit, func(ctx context.Context) error {
		ended, stop := a.await(ctx, id, mobycontainer.WaitConditionRemoved)
		defer stop()
		select {
		case end := <-ended:
			return end.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for range 10 {
		if _, err = a.inspect(ctx, id); err != nil {
			break
		}
		if !pause.For(ctx, pollGone) {
			return fmt.Errorf("wait for the end of box %s: %w", id, context.Cause(ctx))
		}
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("remove box %s: it is still there", id)
	}
	return err
}

// end is how a container ended, or why the engine does not tell.
type end struct {
	code int64
	err  error
}

// await makes the engine tell when the container fulfills the condition. The request has reached the engine when await returns.
// The caller calls stop. The client hands its answer over without regard to any context, so somebody must take it also when
// the caller does not.
func (a api) await(ctx context.Context, id string, until mobycontainer.WaitCondition) (told <-chan end, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	wait := a.cli.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: until})
	out, taken := make(chan end, 1), make(chan struct{})
	go func() {
		defer close(taken)
		select {
		case res := <-wait.Result:
			out <- end{code: res.StatusCode}
		case err := <-wait.Error:
			out <- end{err: err}
		}
	}()
	return out, func() { cancel(); <-taken }
}
