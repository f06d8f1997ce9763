package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/supervisor"
)

const (
	wipePrefix = container.Product + "-wipe-"
	wipeDir    = "/left"
	// wiperLifetime is when a wiper counts as expired. It ends by itself well before.
	wiperLifetime = 15 * time.Minute
)

// wipe empties a volume that the engine can't remove, by a short-lived container of the supervisor, which needs no open file
// for each level of a tree. When ctx ends first, the wiper goes on, and the next call finds the volume emptier.
//
// The wiper's name is the lock between workers. It has the labels of a box, so that reapers find one that nobody started.
func (l leftovers) wipe(ctx context.Context, volume string) (err error) {
	what, err := l.delivery.image(ctx)
	if err != nil {
		return err
	}
	id, err := l.createWiper(ctx, what, volume)
	if err != nil || id == "" {
		return err
	}
	defer func() {
		clean, cancel := detached(ctx, removeTimeout)
		defer cancel()
		err = errors.Join(err, l.delivery.dropFillImage(clean, what.tag))
	}()
	ended, stop := l.await(ctx, id, mobycontainer.WaitConditionNextExit)
	defer stop()
	err = l.call(ctx, "start wiper of volume "+volume, startTimeout, func(ctx context.Context) error {
		_, err := l.cli.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
	if err != nil {
		clean, cancel := detached(ctx, removeTimeout)
		defer cancel()
		return errors.Join(err, l.destroy(clean, id))
	}
	select {
	case end := <-ended:
		if end.err != nil {
			return l.unavailable("wait for wiper of volume "+volume, end.err)
		}
		if end.code != 0 {
			return fmt.Errorf("wipe volume %s: the wiper ended with %d: something in it can't be removed", volume, end.code)
		}
	case <-ctx.Done():
		return fmt.Errorf("wipe volume %s: not done yet: %w", volume, context.Cause(ctx))
	}
	return l.waitGone(ctx, id, removeTimeout)
}

// createWiper returns the id of the container, or "" if another worker's has done the work meanwhile.
func (l leftovers) createWiper(ctx context.Context, what supervisorImage, volume string) (id string, err error) {
	req := wipeRequest(what, volume, l.delivery.runtime, l.delivery.cgroupParent, time.Now())
	for range removeTries {
		err = l.call(ctx, "create wiper of volume "+volume, createTimeout, func(ctx context.Context) error {
			res, err := l.cli.ContainerCreate(ctx, req)
			id = res.ID
			return err
		})
		switch {
		case err == nil:
			return id, nil
		case errdefs.IsConflict(err):
			return "", l.waitGone(ctx, req.Name, wiperLifetime)
		case !errdefs.IsNotFound(err):
			return "", err
		}
		if err := l.delivery.loadFillImage(ctx, what); err != nil { // another worker may remove it at once
			return "", err
		}
	}
	return "", err
}

// wipeRequest is pure. The wiper runs nothing of a job's, and reaches the volume alone.
func wipeRequest(what supervisorImage, volume, runtime, cgroupParent string, now time.Time) client.ContainerCreateOptions {
	name := wipePrefix + volume[:min(len(volume), 40)]
	pids := int64(64)
	return client.ContainerCreateOptions{
		Name: name,
		Config: &mobycontainer.Config{
			Image: what.tag, Entrypoint: []string{supervisor.BoxPath}, Cmd: supervisor.WipeArgs(wipeDir), User: "0:0", NetworkDisabled: true,
			Labels: map[string]string{
				container.LabelProduct: container.Product, container.LabelBox: name,
				container.LabelExpires: strconv.FormatInt(now.Add(wiperLifetime).Unix(), 10),
			},
		},
		HostConfig: &mobycontainer.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, CapAdd: supervisor.WipeCapabilities(), SecurityOpt: []string{"no-new-privileges:true"},
			ReadonlyRootfs: true, AutoRemove: true, LogConfig: mobycontainer.LogConfig{Type: "none"}, Runtime: runtime,
			Resources: mobycontainer.Resources{CgroupParent: cgroupParent, Memory: 256 << 20, MemorySwap: 256 << 20, PidsLimit: &pids},
			Mounts:    []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: wipeDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}},
		},
	}
}
