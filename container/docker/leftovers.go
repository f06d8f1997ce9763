package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/internal/pause"
)

// leftovers are volumes of boxes that are gone. An engine removes a box's volume with the box, except that it
//
//   - does not when the box is removed by "docker rm" without -v,
//   - does not when it was killed, or restarted with live-restore, and finds the box ended,
//   - can't if the volume holds a tree so deep that it runs out of open files: it only logs that.
type leftovers struct {
	api
	delivery *delivery
}

// list returns the volumes of boxes that the filter lets through.
func (l leftovers) list(ctx context.Context, filter client.Filters) ([]volume.Volume, error) {
	var res client.VolumeListResult
	err := l.call(ctx, "list volumes of boxes", infoTimeout, func(ctx context.Context) (err error) {
		res, err = l.cli.VolumeList(ctx, client.VolumeListOptions{Filters: filter})
		return err
	})
	return res.Items, err
}

// boxOf names the box that v was made for. Before volumes carried that name, v's own stands for it, which no box can have:
// it is one character too long.
func boxOf(v volume.Volume) string { return cmp.Or(v.Labels[container.LabelBox], v.Name) }

func describe(v volume.Volume) container.Info {
	changed, _ := time.Parse(time.RFC3339, v.CreatedAt) // zero if the engine's time can't be read
	return container.Info{
		ID: v.Name, Name: boxOf(v), State: container.StateRemains, Labels: v.Labels,
		CreatedAt: changed, Workdir: v.Labels[labelWorkdir],
	}
}

// remove removes what is left of the box called name, whose container is gone, and returns nil once there is nothing.
func (l leftovers) remove(ctx context.Context, name string) error {
	if err := l.removeNameless(ctx, name); err != nil {
		return err
	}
	volumes, err := l.list(ctx, client.Filters{}.Add("label", container.LabelProduct+"="+container.Product))
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range volumes {
		if boxOf(v) == name {
			errs = append(errs, l.removeVolume(ctx, v.Name))
		}
	}
	return errors.Join(errs...)
}

// removeNameless removes the box's containers that no name finds any more: an engine that is killed while it removes a
// container has given the name away already, and is back with the rest.
func (l leftovers) removeNameless(ctx context.Context, name string) error {
	containers, err := l.containers(ctx, client.Filters{}.Add("label", container.LabelProduct+"="+container.Product, container.LabelBox+"="+name))
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range containers {
		if len(c.Names) == 0 {
			errs = append(errs, l.destroy(ctx, c.ID))
		}
	}
	return errors.Join(errs...)
}

// removeVolume lets the engine remove the volume, and if it can't, has the volume emptied first.
func (l leftovers) removeVolume(ctx context.Context, name string) error {
	err := l.drop(ctx, name)
	if err == nil || ctx.Err() != nil || errors.Is(err, container.ErrEngineUnavailable) || errdefs.IsConflict(err) {
		return err
	}
	if again := l.wipe(ctx, name); again != nil {
		return errors.Join(err, again)
	}
	return l.drop(ctx, name)
}

// drop asks the engine to remove the volume. An engine that still takes the container down says that the volume is in use.
func (l leftovers) drop(ctx context.Context, name string) error {
	var err error
	for range removeTries {
		err = l.call(ctx, "remove volume "+name, removeTimeout, func(ctx context.Context) error {
			_, err := l.cli.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
			return err
		})
		if errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) || !pause.For(ctx, removePause) {
			break
		}
	}
	return shorten(err)
}

// shorten cuts the text of an error, not its type: for a deep tree an engine names the whole path, 120,000 characters.
func shorten(err error) error {
	const most = 300
	if err == nil || len(err.Error()) <= most {
		return err
	}
	return &shortened{fmt.Sprintf("%.*s…", most, err.Error()), err}
}

type shortened struct {
	text string
	err  error
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.err }
