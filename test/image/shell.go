package testimage

import (
	"archive/tar"
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// shellRecipe is busybox and nothing else: the smallest image with a shell.
func shellRecipe(ctx context.Context, arch string) (recipe, error) {
	if err := onHost(arch); err != nil {
		return recipe{}, err
	}
	box, err := findBusybox(ctx)
	if err != nil {
		return recipe{}, err
	}
	digest, err := fileDigest(box.path)
	if err != nil {
		return recipe{}, err
	}
	return recipe{
		inputs: []string{"busybox", digest, nohup},
		from:   box.from,
		config: v1.Config{Cmd: []string{"sh"}, Env: []string{shellPath}},
		files: func(ctx context.Context) (*tree, error) {
			t := newTree()
			t.base()
			t.put(entry{path: "bin/nohup", kind: tar.TypeReg, mode: 0o755, data: []byte(nohup)}) // busybox's own goes before
			return t, t.busybox(ctx, box.path)
		},
	}, nil
}

// nohup is a command that Debian's busybox lacks, and busybox's own image has.
const nohup = "#!/bin/sh\ntrap '' HUP\nexec \"$@\"\n"

const shellPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
