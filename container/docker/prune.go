package docker

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"slipway/container"
)

// PruneVolumes removes the supervisors' volumes of other builds that no container
// uses, and returns their names. A worker of such a build fills its own again when it needs it.
func (p *Provider) PruneVolumes(ctx context.Context) ([]string, error) {
	at, err := p.delivery.delivered(ctx)
	if err != nil {
		return nil, err
	}
	var list client.VolumeListResult
	err = p.call(ctx, "list supervisors' volumes", infoTimeout, func(ctx context.Context) (err error) {
		list, err = p.cli.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("label", container.LabelProduct+"="+supervisorProduct)})
		return err
	})
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, v := range list.Items {
		if v.Name == at.volume || !strings.HasPrefix(v.Name, p.delivery.volumePrefix) {
			continue
		}
		err := p.call(ctx, "remove volume "+v.Name, removeTimeout, func(ctx context.Context) error {
			_, err := p.cli.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
			return err
		})
		switch {
		case err == nil:
			removed = append(removed, v.Name)
		case !errdefs.IsConflict(err) && !errdefs.IsNotFound(err):
			return removed, err
		}
	}
	return removed, nil
}
