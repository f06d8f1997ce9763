package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway/container"
	"slipway/internal/flock"
)

const (
	rootPrefix = container.Product + "-"
	recordName = "box.json"
)

// record is a file in a box's folder that says whose the folder is. The worker's process holds a lock on it for as long as the
// box is there, and the kernel gives the lock back when that process ends. So a record without a lock is of a worker that
// is dead, and whose supervisor was killed too, or it would have removed the folder.
type record struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"created"`
}

// claim writes the record of a box into its folder, and returns the file that holds the lock.
func claim(root string, info container.Info) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(root, recordName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock.Wait(f); err == nil { // another worker may be looking at it
		err = json.NewEncoder(f).Encode(record{Name: info.Name, Labels: info.Labels, Created: info.CreatedAt})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remains is a folder whose box is gone.
type remains struct {
	root string
	record
	lock *os.File // held until close
}

func (r *remains) close() { _ = r.lock.Close() } // what it loses is the lock

// takeOver returns what remains in the folder root, or nil if it is no box's, or a living worker's.
func takeOver(root string) *remains {
	f, err := os.OpenFile(filepath.Join(root, recordName), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	r := &remains{root: root, lock: f}
	if flock.Try(f) != nil || json.NewDecoder(f).Decode(&r.record) != nil || r.Name == "" {
		r.close()
		return nil
	}
	return r
}

// dead calls do with what remains of each box of a dead worker.
func (p *Provider) dead(do func(*remains)) error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what is left of boxes: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), rootPrefix) {
			continue
		}
		if r := takeOver(filepath.Join(p.dir, e.Name())); r != nil {
			do(r)
			r.close()
		}
	}
	return nil
}

// removeRemains removes what a dead worker left of the box called name.
func (p *Provider) removeRemains(ctx context.Context, name string) error {
	var removed error
	err := p.dead(func(r *remains) {
		if r.Name == name && ctx.Err() == nil {
			removed = errors.Join(removed, p.wipe(r.root))
		}
	})
	if err = errors.Join(err, removed, context.Cause(ctx)); err != nil {
		return fmt.Errorf("remove box %s: %w", name, err)
	}
	return nil
}

// wipe removes the folder of a box, at any depth. The record goes last: it says whose the rest is if the removal is cut short.
// It takes no context: like any removal here it goes on, and the program bounds it.
func (p *Provider) wipe(root string) error {
	for _, dir := range []string{filepath.Join(root, workName), filepath.Join(root, tmpName)} {
		if os.RemoveAll(dir) == nil {
			continue
		}
		// A tree that is too deep for the open files that this process may have.
		if err := p.empty(dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(root)
}
