package testimage

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	gatewayModule  = "github.com/versity/versitygw"
	gatewayProgram = "/usr/local/bin/versitygw"
)

// gatewayRecipe is the gateway alone. The published image starts it through a
// shell script, which hands any arguments on as they are; so does this one without
// a shell. Only a start without arguments (VGW_BACKEND) needs the published one.
func gatewayRecipe(ctx context.Context, arch string) (recipe, error) {
	version, inputs, err := goModule(ctx, gatewayModule, arch)
	if err != nil {
		return recipe{}, err
	}
	return recipe{
		inputs: inputs,
		from:   gatewayModule + "@" + version,
		config: v1.Config{
			Entrypoint: []string{gatewayProgram},
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		files: func(ctx context.Context) (*tree, error) {
			program, err := goBuild(ctx, serversMod, gatewayModule+"/cmd/versitygw", arch)
			if err != nil {
				return nil, err
			}
			t := newTree()
			t.base()
			t.dir("tmp/vgw", 0o755, 0)
			t.dir("data", 0o755, 0) // where compose and the tests keep buckets
			return t, t.host(gatewayProgram, program)
		},
	}, nil
}
