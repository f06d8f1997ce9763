package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"slipway/container"
	"slipway/container/supervisor"
)

// endTime is how long a supervisor may take to end when its connection is closed:
// it kills what runs, and empties the folders.
const endTime = 90 * time.Second

// sandbox is one folder and, once started, one supervisor. It is a container.Sandbox.
type sandbox struct {
	p    *Provider
	spec container.Spec // defaults filled in
	root string
	lock *os.File // on the record
	done chan struct{}

	mu       sync.Mutex
	info     container.Info
	session  *supervisor.Session // nil before Start
	child    *child
	starting bool
	removed  bool // by its holder
	gone     bool // by anyone
	end      sync.Once
	watch    sync.WaitGroup
}

var _ container.Sandbox = (*sandbox)(nil)

const (
	workName = "work"
	tmpName  = "tmp"
)

func (b *sandbox) work() string { return filepath.Join(b.root, workName) }
func (b *sandbox) tmp() string  { return filepath.Join(b.root, tmpName) }

// Start starts the supervisor. See container.Sandbox.
func (b *sandbox) Start(ctx context.Context) error {
	b.mu.Lock()
	again := b.starting || b.gone
	b.starting = true
	b.mu.Unlock()
	if again {
		return fmt.Errorf("start box %s: %w: it was started or removed before", b.spec.Name, container.ErrStopped)
	}
	child, err := b.p.start(b)
	if err != nil {
		return fmt.Errorf("start box %s: %w", b.spec.Name, err)
	}
	session, err := supervisor.Connect(ctx, child.conn, b.config())
	if err != nil {
		err = errors.Join(err, child.wait(endTime))
		return fmt.Errorf("start box %s: %w", b.spec.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.child = session, child
	b.info.State = container.StateRunning
	if b.gone { // removed by another goroutine, meanwhile
		child.terminate()
	}
	b.watch.Go(func() {
		<-session.Done()
		b.mu.Lock()
		b.info.State = container.StateExited
		b.mu.Unlock()
		b.end.Do(func() { close(b.done) })
	})
	return nil
}

func (b *sandbox) config() supervisor.Config {
	env := map[string]string{"TMPDIR": b.tmp()}
	maps.Copy(env, b.spec.Env)
	return supervisor.Config{
		Workdir: b.work(), User: b.spec.User, Env: env, DeadMan: b.spec.DeadMan, Lifetime: b.spec.Lifetime,
		Scratch: []string{b.tmp()}, Root: b.root, Home: b.tmp(),
	}
}

// live returns the session, or the error of a box that has none.
func (b *sandbox) live() (*supervisor.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.removed:
		return nil, fmt.Errorf("box %s: %w", b.spec.Name, container.ErrStopped)
	case b.gone:
		return nil, fmt.Errorf("box %s: %w: it was removed", b.spec.Name, container.ErrBoxLost)
	case b.session == nil:
		return nil, fmt.Errorf("box %s: %w: it was not started", b.spec.Name, container.ErrStopped)
	}
	return b.session, nil
}

// Exec runs a command. See container.Sandbox.
func (b *sandbox) Exec(ctx context.Context, cmd container.Command) (container.Exit, error) {
	if err := b.spec.CheckCommand(cmd); err != nil {
		return container.Exit{}, err
	}
	if own := os.Geteuid(); own != 0 && cmd.User != nil {
		if *cmd.User != b.spec.User && *cmd.User != container.DefaultUser {
			return container.Exit{}, fmt.Errorf("user %d:%d: %w without isolation", cmd.User.UID, cmd.User.GID, container.ErrUnsupported)
		}
		cmd.User = nil
	}
	s, err := b.live()
	if err != nil {
		return container.Exit{}, err
	}
	return s.Exec(ctx, cmd)
}

// Files gives access to the workspace.
func (b *sandbox) Files() container.Files {
	s, err := b.live()
	if err != nil {
		return container.FailedFiles(err)
	}
	return s.Files()
}

// Done is closed when the box has ended.
func (b *sandbox) Done() <-chan struct{} { return b.done }

// Stop ends all commands and the box. See container.Sandbox.
func (b *sandbox) Stop(ctx context.Context, grace time.Duration) error {
	s, err := b.live()
	if err != nil {
		return nil //nolint:nilerr // what does not run is stopped
	}
	return s.Stop(ctx, grace)
}

// Remove ends the box and removes its folder. When ctx ends first it returns, and the removal goes on. See
// container.Sandbox.
func (b *sandbox) Remove(ctx context.Context, _ ...container.RemoveOption) error {
	b.mu.Lock()
	b.removed = true
	session := b.session
	b.mu.Unlock()
	if session != nil {
		_ = session.Close() // never fails
	}
	return b.p.remove(ctx, b)
}

// destroy ends the supervisor, if one runs, and removes the folder.
func (b *sandbox) destroy() error {
	b.mu.Lock()
	b.gone = true
	session, child := b.session, b.child
	b.mu.Unlock()
	b.end.Do(func() { close(b.done) })
	var ended error
	if session != nil {
		child.terminate()
		ended = child.wait(endTime)
		select { // wait for the session to see the end of its pipe: a waiting Exec then returns ErrBoxLost, not ErrStopped
		case <-session.Done():
		case <-time.After(5 * time.Second):
		}
		_ = session.Close() // never fails
		b.watch.Wait()
	}
	if err := b.p.wipe(b.root); err != nil { // the supervisor has done so, unless it was never started or was killed
		return fmt.Errorf("remove box %s: %w", b.spec.Name, errors.Join(err, ended))
	}
	_ = b.lock.Close() // the file is gone
	b.p.forget(b)
	return nil
}

// Info describes the box.
func (b *sandbox) Info() container.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	info := b.info
	info.Labels = maps.Clone(info.Labels)
	return info
}
