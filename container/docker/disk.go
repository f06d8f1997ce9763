package docker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/internal/size"
)

// DefaultMinFree is the default of Config.MinFree.
const DefaultMinFree = 1 << 30

// minInodes is how many files the engine's disk must have room for: an image or a workspace has tens of thousands.
const minInodes = 20_000

// disk watches the file system that the engine keeps boxes, workspaces and images on. When it is full, every box on it fails
// in odd ways, so that none should be begun. Its room is known only where the engine is on this machine and its folder can be
// seen; the engine itself does not tell it.
type disk struct {
	api
	min int64 // bytes; negative: do not look

	mu   sync.Mutex
	root string // the engine's folder; empty: not asked yet
}

// room is what a file system has for users without privileges. inodes is negative if it does not count them.
type room struct{ bytes, inodes int64 }

func (d *disk) check(ctx context.Context) error {
	if d.min < 0 || !strings.HasPrefix(d.cli.DaemonHost(), "unix://") {
		return nil
	}
	root, err := d.folder(ctx)
	if err != nil {
		return err
	}
	have, ok := roomOf(root)
	if !ok {
		return nil
	}
	return have.enough(root, d.min)
}

// folder asks the engine once: it would have to be restarted with another configuration to answer otherwise.
func (d *disk) folder(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root != "" {
		return d.root, nil
	}
	err := d.call(ctx, "ask engine for its folder", infoTimeout, func(ctx context.Context) error {
		info, err := d.cli.Info(ctx, client.InfoOptions{})
		d.root = info.Info.DockerRootDir
		return err
	})
	return d.root, err
}

// enough returns an error that matches ErrEngineUnavailable and ErrEngineFull if a box should not be begun.
func (r room) enough(dir string, least int64) error {
	lack := ""
	switch {
	case r.bytes < least:
		lack = fmt.Sprintf("%s has %s free, less than %s", dir, size.Format(r.bytes>>20<<20), size.Format(least))
	case r.inodes >= 0 && r.inodes < minInodes:
		lack = fmt.Sprintf("%s has room for %d more files, less than %d", dir, r.inodes, minInodes)
	default:
		return nil
	}
	return hint.With(fmt.Errorf("%w: %w: %s", container.ErrEngineUnavailable, container.ErrEngineFull, lack),
		"make room (docker system df tells what takes it), or lower docker.min_free")
}
