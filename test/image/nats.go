package testimage

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const natsModule = "github.com/nats-io/nats-server/v2"

// natsRecipe is nats-server alone, as in the published image without a distribution.
func natsRecipe(ctx context.Context, arch string) (recipe, error) {
	version, inputs, err := goModule(ctx, natsModule, arch)
	if err != nil {
		return recipe{}, err
	}
	return recipe{
		inputs: inputs,
		from:   natsModule + "@" + version,
		config: v1.Config{
			Entrypoint:   []string{"/nats-server"},
			Cmd:          []string{"--config", "nats-server.conf"},
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"},
			ExposedPorts: map[string]struct{}{"4222/tcp": {}, "6222/tcp": {}, "8222/tcp": {}},
		},
		files: func(ctx context.Context) (*tree, error) {
			program, err := goBuild(ctx, serversMod, natsModule, arch)
			if err != nil {
				return nil, err
			}
			t := newTree()
			t.base()
			t.text("nats-server.conf", "http_port: 8222\n")
			return t, t.host("nats-server", program)
		},
	}, nil
}
