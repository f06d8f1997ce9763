package testimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// workerRecipe is cmd/worker of this checkout. It is root in its container:
// whoever may use the engine's socket is root on the host anyway.
func workerRecipe(ctx context.Context, arch string) (recipe, error) {
	program, err := goBuild(ctx, "", "slipway/cmd/worker", arch)
	if err != nil {
		return recipe{}, err
	}
	digest, err := fileDigest(program)
	if err != nil {
		return recipe{}, err
	}
	return recipe{
		inputs: []string{"worker", digest},
		from:   "cmd/worker of this checkout",
		config: v1.Config{
			Entrypoint:   []string{"/usr/local/bin/worker"},
			Cmd:          []string{"serve"},
			Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			ExposedPorts: map[string]struct{}{"9464/tcp": {}},
		},
		files: func(context.Context) (*tree, error) {
			t := newTree()
			t.base()
			return t, t.host("usr/local/bin/worker", program)
		},
	}, nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
