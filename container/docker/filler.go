package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/internal/pause"
)

// createFiller returns the container that mounts the volume over the image's copy
// of the supervisor. It waits while another worker has one.
func (d *delivery) createFiller(ctx context.Context, what supervisorImage) (id string, err error) {
	for range fillTries {
		err = d.call(ctx, "create supervisor's volume", createTimeout, func(ctx context.Context) error {
			res, err := d.cli.ContainerCreate(ctx, fillRequest(what))
			id = res.ID
			return err
		})
		switch {
		case err == nil:
			return id, nil
		case errdefs.IsNotFound(err): // never loaded, or another worker has just removed it
			err = d.loadFillImage(ctx, what)
		case errdefs.IsConflict(err):
			err = d.waitForFiller(ctx, what.volume)
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("create supervisor's volume: container %s is always in the way: %w", what.volume, err)
}

func fillRequest(what supervisorImage) client.ContainerCreateOptions {
	labels := map[string]string{container.LabelProduct: supervisorProduct}
	return client.ContainerCreateOptions{
		Name: what.volume,
		Config: &mobycontainer.Config{
			Image: what.tag, Entrypoint: []string{supervisor.BoxPath}, User: "65534:65534", NetworkDisabled: true, Labels: labels,
		},
		HostConfig: &mobycontainer.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"},
			ReadonlyRootfs: true, LogConfig: mobycontainer.LogConfig{Type: "none"},
			Mounts: []mount.Mount{{
				Type: mount.TypeVolume, Source: what.volume, Target: supervisor.MountPath,
				VolumeOptions: &mount.VolumeOptions{Labels: labels},
			}},
		},
	}
}

func (d *delivery) waitForFiller(ctx context.Context, name string) error {
	if !pause.For(ctx, fillPause) {
		return context.Cause(ctx)
	}
	return d.dropStaleFiller(ctx, name)
}

func (d *delivery) dropStaleFiller(ctx context.Context, name string) error {
	c, err := d.inspect(ctx, name)
	if errdefs.IsNotFound(err) { // gone, or still being made and not to be seen yet
		return nil
	}
	if err != nil {
		return err
	}
	if made, err := time.Parse(time.RFC3339Nano, c.Created); err == nil && time.Since(made) > staleFill {
		return d.destroy(ctx, c.ID)
	}
	return nil
}

func (d *delivery) loadFillImage(ctx context.Context, what supervisorImage) error {
	box, err := supervisor.Binary(what.arch)
	if err != nil {
		return fmt.Errorf("deliver supervisor: %w", err)
	}
	archive, err := imageArchive(what.tag, what.arch, box)
	if err != nil {
		return err
	}
	return d.call(ctx, "load supervisor's image", loadTimeout, func(ctx context.Context) error {
		res, err := d.cli.ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res)
		return errors.Join(err, res.Close())
	})
}

// dropFillImage removes the image that filled the volume. If another worker uses it, or has removed it already, that
// is no error: the last worker removes it.
func (d *delivery) dropFillImage(ctx context.Context, tag string) error {
	err := d.call(ctx, "remove supervisor's image", removeTimeout, func(ctx context.Context) error {
		_, err := d.cli.ImageRemove(ctx, tag, client.ImageRemoveOptions{})
		return err
	})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return err
}
