package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/internal/hint"
)

// Deadlines of single calls. An engine that hangs does not answer, and a call without a deadline would hang with it.
const (
	inspectTimeout = 5 * time.Second
	createTimeout  = 30 * time.Second
	startTimeout   = 30 * time.Second
	killTimeout    = 10 * time.Second
	removeTimeout  = 30 * time.Second
	loadTimeout    = 60 * time.Second
	infoTimeout    = 10 * time.Second
)

var errDeadline = errors.New("no answer within the call's own deadline")

// api speaks to one engine. Its calls end, and their errors have types.
type api struct{ cli *client.Client }

// call makes one request with a deadline of its own and types its error.
func (a api) call(ctx context.Context, verb string, limit time.Duration, fn func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errDeadline)
	defer cancel()
	err := fn(limited)
	if err == nil {
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", verb, context.Cause(ctx))
	case limited.Err() != nil:
		return a.unavailable(verb, fmt.Errorf("no answer within %v", limit))
	case !answered(err):
		return a.unavailable(verb, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// answered tells whether err is the engine's own answer. Every other error is of the connection to it.
func answered(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsConflict(err) || errdefs.IsInvalidArgument(err) ||
		errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) || errdefs.IsInternal(err) ||
		errdefs.IsNotImplemented(err) || errdefs.IsFailedPrecondition(err) || errdefs.IsNotModified(err) ||
		errdefs.IsResourceExhausted(err) || errdefs.IsUnknown(err)
}

// unavailable is the error of an engine that does not answer, with a hint. It keeps the text of err, not its
// type: a call's own deadline must not look like the caller's.
func (a api) unavailable(verb string, err error) error {
	return hint.With(fmt.Errorf("%s: %w at %s: %s", verb, container.ErrEngineUnavailable, a.cli.DaemonHost(), err.Error()),
		"start it, or name another one with DOCKER_HOST or the worker's docker host setting")
}

func (a api) inspect(ctx context.Context, name string) (mobycontainer.InspectResponse, error) {
	var res client.ContainerInspectResult
	err := a.call(ctx, "inspect box "+name, inspectTimeout, func(ctx context.Context) (err error) {
		res, err = a.cli.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		return err
	})
	return res.Container, err
}

// detached returns a context for cleanup: it lives for limit, also after ctx has ended.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
