package docker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
)

// Get describes the box called name. See container.Provider.
func (p *Provider) Get(ctx context.Context, name string) (container.Info, error) {
	c, err := p.inspect(ctx, name)
	if errdefs.IsNotFound(err) || err == nil && !ours(c) {
		return container.Info{}, fmt.Errorf("find box %s: %w", name, container.ErrNotFound)
	}
	if err != nil {
		return container.Info{}, err
	}
	made, _ := time.Parse(time.RFC3339Nano, c.Created) // zero if the engine's time can't be read
	return container.Info{
		ID: c.ID, Name: strings.TrimPrefix(c.Name, "/"), State: stateOf(c.State.Status), Labels: c.Config.Labels,
		CreatedAt: made, Workdir: c.Config.Labels[labelWorkdir],
	}, nil
}

// List describes every box that carries all the given labels. See container.Provider.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]container.Info, error) {
	filter := client.Filters{}.Add("label", container.LabelProduct+"="+container.Product)
	for k, v := range labels {
		filter = filter.Add("label", k+"="+v)
	}
	// The volumes first: what is unused now and has no box afterwards has lost it.
	volumes, err := p.left.list(ctx, filter.Clone().Add("dangling", "true"))
	if err != nil {
		return nil, err
	}
	containers, err := p.containers(ctx, filter)
	if err != nil {
		return nil, err
	}
	infos := make([]container.Info, 0, len(containers))
	whole := map[string]bool{}
	for _, c := range containers {
		name := c.Labels[container.LabelBox] // an engine that was killed while it removed a container may have lost its name alone
		if len(c.Names) > 0 {
			name = strings.TrimPrefix(c.Names[0], "/")
		} else if p.isGhost(ctx, c.ID) {
			continue
		}
		infos = append(infos, container.Info{
			ID: c.ID, Name: name, State: stateOf(c.State), Labels: c.Labels,
			CreatedAt: time.Unix(c.Created, 0), Workdir: c.Labels[labelWorkdir],
		})
		whole[name] = true
	}
	for _, v := range volumes {
		if box := boxOf(v); !whole[box] { // else it goes with the box
			whole[box] = true
			infos = append(infos, describe(v))
		}
	}
	return infos, nil
}

// isGhost reports whether the engine has a container on its list, and nothing else of it. An engine that is back after it was
// killed lists some that it has just removed, without a name and as "dead", until its next start. No removal takes them off.
func (a api) isGhost(ctx context.Context, id string) bool {
	_, err := a.inspect(ctx, id)
	return errdefs.IsNotFound(err)
}

func (a api) containers(ctx context.Context, filter client.Filters) ([]mobycontainer.Summary, error) {
	var res client.ContainerListResult
	err := a.call(ctx, "list boxes", infoTimeout, func(ctx context.Context) (err error) {
		res, err = a.cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
		return err
	})
	return res.Items, err
}

func ours(c mobycontainer.InspectResponse) bool {
	return c.Config != nil && c.State != nil && c.Config.Labels[container.LabelProduct] == container.Product
}

func stateOf(s mobycontainer.ContainerState) container.State {
	switch s {
	case mobycontainer.StateCreated:
		return container.StateCreated
	case mobycontainer.StateRunning, mobycontainer.StatePaused, mobycontainer.StateRestarting:
		return container.StateRunning
	default:
		return container.StateExited
	}
}
