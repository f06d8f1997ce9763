package docker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/internal/hint"
)

// The supervisor reaches boxes on a volume that is filled once per engine and build:
// the engine copies what an image has at a mount point into a volume that is
// empty. It works on an engine far away and touches neither a registry nor the archive API.
const (
	volumePrefix = "slipway-supervisor-"
	fillImage    = "slipway-supervisor"
	// supervisorProduct is the value of LabelProduct on the volume and its filler: they belong to no box, so that no
	// reaper takes them.
	supervisorProduct = container.Product + "-supervisor"
	// staleFill is how old the container that fills must be to belong to a worker that died.
	staleFill = time.Minute
	fillTries = 200
	fillPause = 50 * time.Millisecond
)

// The exit codes of a supervisor without a worker. Each of them proves that the program runs.
const (
	exitFirst = 70
	exitLast  = 74
)

// delivery puts the supervisor onto the engine.
type delivery struct {
	api
	volumePrefix          string // volumePrefix; a test sets its own
	runtime, cgroupParent string // as in Config
	fills                 singleFlight[string, engineFacts]

	mu    sync.Mutex
	facts *engineFacts // nil until the supervisor's volume was found or filled
}

// delivered returns where the supervisor's volume is, filling it if this engine does not have it.
func (d *delivery) delivered(ctx context.Context) (engineFacts, error) {
	d.mu.Lock()
	known := d.facts
	d.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	return d.fills.do(ctx, "", nil, func(ctx context.Context, _ func(string)) (engineFacts, error) {
		return d.deliver(ctx, false)
	})
}

// redeliver checks the volume after a box did not come up: a worker or an engine
// that died may have left it half filled, another worker may be filling it right now, and an
// operator may have pruned it (an engine then makes an empty one without an error).
func (d *delivery) redeliver(ctx context.Context) error {
	_, err := d.fills.do(ctx, "again", nil, func(ctx context.Context, _ func(string)) (engineFacts, error) {
		return d.deliver(ctx, true)
	})
	return err
}

// supervisorImage names one build of the supervisor on an engine: the volume, and the image that fills it.
type supervisorImage struct{ arch, volume, tag string }

func (d *delivery) deliver(ctx context.Context, doubt bool) (engineFacts, error) {
	what, err := d.image(ctx)
	if err != nil {
		return engineFacts{}, err
	}
	var info client.SystemInfoResult
	err = d.call(ctx, "ask engine's processors", infoTimeout, func(ctx context.Context) (err error) {
		info, err = d.cli.Info(ctx, client.InfoOptions{})
		return err
	})
	if err != nil {
		return engineFacts{}, err
	}
	at, err := d.findVolume(ctx, what.volume)
	switch {
	case doubt || errdefs.IsNotFound(err):
		if err = d.fill(ctx, what); err == nil {
			at, err = d.findVolume(ctx, what.volume)
		}
	case err == nil:
		err = d.tidy(ctx, what)
	}
	if err != nil {
		return engineFacts{}, fmt.Errorf("deliver supervisor: %w", err)
	}
	at.runtime, at.cgroupParent, at.cpus = d.runtime, d.cgroupParent, info.Info.NCPU
	d.mu.Lock()
	d.facts = &at
	d.mu.Unlock()
	return at, nil
}

// image names the build of the supervisor that this engine can run.
func (d *delivery) image(ctx context.Context) (supervisorImage, error) {
	var v client.ServerVersionResult
	err := d.call(ctx, "ask engine's architecture", inspectTimeout, func(ctx context.Context) (err error) {
		v, err = d.cli.ServerVersion(ctx, client.ServerVersionOptions{})
		return err
	})
	if err != nil {
		return supervisorImage{}, err
	}
	digest, err := supervisor.Digest(v.Arch)
	if err != nil {
		return supervisorImage{}, fmt.Errorf("deliver supervisor: %w", err)
	}
	short := digest[:12]
	return supervisorImage{arch: v.Arch, volume: d.volumePrefix + short, tag: fillImage + ":" + short}, nil
}

// tidy removes the container and the image of a worker that died while it filled the volume.
func (d *delivery) tidy(ctx context.Context, what supervisorImage) error {
	if err := d.dropStaleFiller(ctx, what.volume); err != nil {
		return err
	}
	return d.dropFillImage(ctx, what.tag)
}

func (d *delivery) findVolume(ctx context.Context, name string) (engineFacts, error) {
	at := engineFacts{volume: name}
	err := d.call(ctx, "inspect volume "+name, inspectTimeout, func(ctx context.Context) error {
		res, err := d.cli.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
		if err == nil && res.Volume.Mountpoint != "" {
			at.hostsFile = path.Join(res.Volume.Mountpoint, "hosts")
		}
		return err
	})
	return at, err
}

// fill makes the volume, or checks the one that is there and makes it anew if it is bad. The
// container's fixed name is the lock between workers; the copy is done when its creation returns.
func (d *delivery) fill(ctx context.Context, what supervisorImage) (err error) {
	defer func() {
		clean, cancel := detached(ctx, removeTimeout)
		defer cancel()
		err = errors.Join(err, d.dropFillImage(clean, what.tag))
	}()
	for range 2 {
		ok, err := d.fillOnce(ctx, what)
		if err != nil || ok {
			return err
		}
		err = d.call(ctx, "remove damaged volume "+what.volume, removeTimeout, func(ctx context.Context) error {
			_, err := d.cli.VolumeRemove(ctx, what.volume, client.VolumeRemoveOptions{})
			return err
		})
		if err != nil && !errdefs.IsNotFound(err) {
			return hint.With(err, "remove the containers that use it, then the volume")
		}
	}
	return fmt.Errorf("volume %s: the supervisor does not run from it: %w", what.volume, container.ErrUnsupported)
}

// fillOnce reports whether the supervisor runs from the volume.
func (d *delivery) fillOnce(ctx context.Context, what supervisorImage) (ok bool, err error) {
	id, err := d.createFiller(ctx, what)
	if err != nil {
		return false, err
	}
	defer func() {
		clean, cancel := detached(ctx, removeTimeout)
		defer cancel()
		err = errors.Join(err, d.destroy(clean, id))
	}()
	ended, stop := d.await(ctx, id, mobycontainer.WaitConditionNextExit)
	defer stop()
	err = d.call(ctx, "start supervisor's check", startTimeout, func(ctx context.Context) error {
		_, err := d.cli.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
	if err != nil && !errors.Is(err, container.ErrEngineUnavailable) && ctx.Err() == nil {
		return false, nil // the file exists and can't be executed
	}
	if err != nil {
		return false, err
	}
	select {
	case end := <-ended:
		if end.err != nil {
			return false, d.unavailable("wait for supervisor's check", end.err)
		}
		return end.code >= exitFirst && end.code <= exitLast, nil
	case <-time.After(startTimeout):
		return false, d.unavailable("wait for supervisor's check", errDeadline)
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
