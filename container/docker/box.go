package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/supervisor"
)

// greetTimeout bounds the supervisor's first answer, on an engine that is busy with other starts.
const greetTimeout = 20 * time.Second

// sandbox is one container. It is a container.Sandbox.
type sandbox struct {
	p    *Provider
	spec container.Spec // defaults filled in
	done chan struct{}
	end  func() // closes done, once

	mu      sync.Mutex
	info    container.Info
	session *supervisor.Session // nil before Start
	out     *demux
	stopped bool // Stop or Remove was called
	gone    bool // removed for sure
	watch   sync.WaitGroup
}

var _ container.Sandbox = (*sandbox)(nil)

func newBox(p *Provider, spec container.Spec) *sandbox {
	b := &sandbox{p: p, spec: spec, done: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.done) })
	b.info = container.Info{
		Name: spec.Name, State: container.StateCreated, Labels: maps.Clone(spec.Labels), Workdir: spec.Workdir,
	}
	return b
}

// Start starts the box. See container.Sandbox.
func (b *sandbox) Start(ctx context.Context) error {
	b.mu.Lock()
	already := b.session != nil || b.stopped
	b.mu.Unlock()
	if already {
		return fmt.Errorf("start box %s: %w: it was started or removed before", b.spec.Name, container.ErrStopped)
	}
	err := b.start(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, container.ErrEngineUnavailable) {
		return err
	}
	if again := b.createAnew(ctx); again != nil {
		return errors.Join(err, again)
	}
	return b.start(ctx)
}

// createAnew checks the supervisor's volume and makes the container again. The old container goes first: it holds the
// volume.
func (b *sandbox) createAnew(ctx context.Context) error {
	id := b.Info().ID
	b.p.witness.forget(id)
	if err := b.p.destroyInTurn(ctx, id); err != nil {
		return err
	}
	if err := b.p.delivery.redeliver(ctx); err != nil {
		return err
	}
	return b.createOnce(ctx)
}

// start attaches before it starts: the box's stdin must never be without a holder, and nothing of its stdout may be
// missed.
func (b *sandbox) start(ctx context.Context) error {
	if err := b.p.enter(ctx); err != nil {
		return err
	}
	defer b.p.leave()
	id := b.Info().ID
	var line client.ContainerAttachResult
	err := b.p.call(ctx, "attach to box "+b.spec.Name, inspectTimeout, func(ctx context.Context) (err error) {
		line, err = b.p.cli.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		return err
	})
	if err != nil {
		return err
	}
	b.p.witness.watch(ctx, id)
	conn := &conn{line: line, demux: &demux{r: line.Reader}}
	err = b.p.call(ctx, "start box "+b.spec.Name, startTimeout, func(ctx context.Context) error {
		_, err := b.p.cli.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
	if err != nil {
		_ = conn.Close() // ends a box that has started all the same
		return err
	}
	greet, cancel := context.WithTimeoutCause(ctx, greetTimeout, errDeadline)
	defer cancel()
	session, err := supervisor.Connect(greet, conn, b.supervisorConfig())
	if err != nil {
		return b.lost("greet supervisor of box "+b.spec.Name, conn.demux, err)
	}
	b.running(session, conn.demux)
	return nil
}

func (b *sandbox) running(s *supervisor.Session, out *demux) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.out = s, out
	b.info.State = container.StateRunning
	b.watch.Go(func() {
		<-s.Done()
		b.mu.Lock()
		b.info.State = container.StateExited
		b.mu.Unlock()
		b.end()
	})
}

func (b *sandbox) supervisorConfig() supervisor.Config {
	env := map[string]string{"LANG": "C.UTF-8", "CI": "true"}
	maps.Copy(env, b.spec.Env)
	return supervisor.Config{
		Workdir: b.spec.Workdir, User: b.spec.User, Env: env, DeadMan: b.spec.DeadMan, Lifetime: b.spec.Lifetime,
		Lost: b.whyLost,
	}
}

// lost adds to err what the box has printed to stderr.
func (b *sandbox) lost(verb string, out *demux, err error) error {
	if text := strings.TrimSpace(out.stderrHead()); text != "" {
		return fmt.Errorf("%s: %w: %w (it said: %s)", verb, container.ErrBoxLost, err, text)
	}
	return fmt.Errorf("%s: %w: %w", verb, container.ErrBoxLost, err)
}

// live returns the session, or why there is none.
func (b *sandbox) live() (*supervisor.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.session == nil {
		return nil, fmt.Errorf("box %s: %w", b.spec.Name, container.ErrStopped)
	}
	return b.session, nil
}

// Exec runs a command to its end. See container.Sandbox.
func (b *sandbox) Exec(ctx context.Context, cmd container.Command) (container.Exit, error) {
	if err := b.spec.CheckCommand(cmd); err != nil {
		return container.Exit{}, err
	}
	s, err := b.live()
	if err != nil {
		return container.Exit{}, err
	}
	return s.Exec(ctx, cmd)
}

// Files gives access to the workspace. See container.Sandbox.
func (b *sandbox) Files() container.Files {
	s, err := b.live()
	if err != nil {
		return container.FailedFiles(err)
	}
	return s.Files()
}

// Done is closed when the box has ended. See container.Sandbox.
func (b *sandbox) Done() <-chan struct{} { return b.done }

// Info describes the box. See container.Sandbox.
func (b *sandbox) Info() container.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.info
}

// Stop ends all commands and the box. See container.Sandbox.
func (b *sandbox) Stop(ctx context.Context, grace time.Duration) error {
	s, err := b.live()
	if err != nil {
		return nil //nolint:nilerr // a box that does not run is stopped
	}
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	return s.Stop(ctx, grace)
}

// Remove destroys the box and waits until it is gone. See container.Sandbox.
//
// The line goes first. An engine does not remove a container, for 20 s or for ever,
// whose output somebody holds and does not read; and a supervisor that loses the line
// wipes and ends by itself, which takes the container along.
func (b *sandbox) Remove(ctx context.Context, _ ...container.RemoveOption) error {
	b.mu.Lock()
	b.stopped = true
	session, gone, id := b.session, b.gone, b.info.ID
	b.mu.Unlock()
	if session != nil {
		_ = session.Close() // the box ends by it; whether it does is checked below
	}
	b.watch.Wait()
	b.end()
	b.p.witness.forget(id)
	if gone {
		return nil
	}
	if session == nil || b.p.leftByItself(ctx, id) != nil {
		if err := b.p.destroyInTurn(ctx, id); err != nil {
			return err
		}
	}
	if err := b.p.left.remove(ctx, b.spec.Name); err != nil {
		return fmt.Errorf("remove box %s: %w", b.spec.Name, err)
	}
	b.mu.Lock()
	b.gone = true
	b.info.State = container.StateExited
	b.mu.Unlock()
	return nil
}

// conn is the box's stdin and stdout over one attached connection.
type conn struct {
	*demux
	line client.ContainerAttachResult
}

var _ io.ReadWriteCloser = (*conn)(nil)

func (c *conn) Write(p []byte) (int, error) { return c.line.Conn.Write(p) }

func (c *conn) Close() error { return c.line.Conn.Close() }
