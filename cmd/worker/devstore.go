package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/cmd/internal/cli"
	"slipway/internal/flock"
	"slipway/internal/hint"
	"slipway/sync/filestore"
	"slipway/sync/s3store"
)

// devBucket is the bucket in the store of worker dev.
const devBucket = "slipway"

// Where a data folder has its store.
const (
	folderStore  = "objects"
	gatewayStore = "s3"
)

// errFolderKind: the data folder has the other kind of store.
var errFolderKind = errors.New("the data folder is another command's")

// checkKind keeps run off a folder of dev, and dev off one of run: the workspaces that the one saved are not in the other's
// store, so a job that waits in the folder's queue would go on without its files.
func checkKind(dir string, shared bool) error {
	other, command := gatewayStore, "worker dev"
	if shared {
		other, command = folderStore, "worker run"
	}
	switch _, err := os.Lstat(filepath.Join(dir, other)); {
	case err == nil:
		return hint.With(fmt.Errorf("%w: %s has the store of %s", errFolderKind, dir, command), "Each keeps its objects in another form. Choose another folder with --data")
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the data folder: %w", err)
	}
	return nil
}

// openStore opens the store. One on the gateway is only ready once it has its bucket.
func (d *devServices) openStore(shared bool) error {
	if !shared {
		store, err := filestore.Open(filepath.Join(d.dir, folderStore))
		if err != nil {
			return err
		}
		d.store = store
		d.closers.add(store.Close)
		return nil
	}
	store, err := s3store.New(s3store.Config{
		Endpoint: d.servers.Endpoint, Bucket: devBucket, PathStyle: true,
		AccessKey: d.servers.AccessKey, SecretKey: d.servers.SecretKey,
	})
	if err != nil {
		return err
	}
	d.store = store
	d.closers.add(func() error { store.Close(); return nil })
	return nil
}

// storeName says where the store is.
func (d *devServices) storeName() string {
	if d.servers.Endpoint == "" {
		return "the folder " + filepath.Join(d.dir, folderStore)
	}
	s3 := cli.S3{Bucket: devBucket, Endpoint: d.servers.Endpoint}
	return s3.Name()
}

// errFolderInUse: another program works on the same data folder.
var errFolderInUse = errors.New("another worker uses this data folder")

// lockFolder keeps a second program off dir: two servers on one store destroy it.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := flock.Try(f); err != nil {
		closeErr := f.Close()
		if errors.Is(err, flock.ErrLocked) {
			return nil, errors.Join(fmt.Errorf("%w: %s; end that one, or choose another folder with --data", errFolderInUse, dir), closeErr)
		}
		return nil, errors.Join(fmt.Errorf("lock the data folder %s: %w", dir, err), closeErr)
	}
	return f.Close, nil
}
