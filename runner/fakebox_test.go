package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/container"
	"slipway/sync/folder"
)

// fakeProvider makes boxes whose workspace is a folder and whose commands are
// words: see fakeBox.Exec. Hooks make its calls fail; a box left alive, or used
// after its removal, fails the test.
type fakeProvider struct {
	t *testing.T

	check   func(context.Context) error
	prepare func(context.Context) error
	create  func(context.Context) error
	start   func(context.Context) error
	exec    func(context.Context, *fakeBox, container.Command) (container.Exit, error) // nil: words
	remove  func(context.Context) error
	listing func(context.Context) error
	list    []container.Info
	image   []string // the files of a box that begins with its image's

	mu      sync.Mutex
	boxes   map[string]*fakeBox // alive
	specs   []container.Spec
	removed []string
}

func newFakeProvider(t *testing.T) *fakeProvider {
	return &fakeProvider{t: t, boxes: map[string]*fakeBox{}}
}

// empty fails the test if a box is left.
func (p *fakeProvider) empty() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.boxes {
		p.t.Errorf("box %s was left alive", name)
	}
}

func (p *fakeProvider) alive() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.boxes)
}

func (p *fakeProvider) Prepare(ctx context.Context, r container.ImageRequest) (container.Image, error) {
	if err := call(ctx, p.prepare); err != nil {
		return container.Image{}, err
	}
	return container.Image{ID: "sha256:abc", Digest: r.Image + "@sha256:abc"}, nil
}

func (p *fakeProvider) Create(ctx context.Context, spec container.Spec) (container.Sandbox, error) {
	if err := call(ctx, p.create); err != nil {
		return nil, err
	}
	tree, err := folder.New(p.t.TempDir())
	if err != nil {
		return nil, err
	}
	spec.Labels = maps.Clone(spec.Labels) // an engine sees what it was sent, not what the caller writes later
	b := &fakeBox{p: p, spec: spec, gone: make(chan struct{})}
	b.files = folderFiles{tree: tree, dir: fmt.Sprint(tree)}
	if spec.FromImage {
		for _, name := range p.image {
			if err := b.files.Write(ctx, name, strings.NewReader("of the image"), 0o644); err != nil {
				return nil, err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[spec.Name] != nil {
		return nil, container.ErrExists
	}
	p.boxes[spec.Name] = b
	p.specs = append(p.specs, spec)
	return b, nil
}

func (p *fakeProvider) Remove(ctx context.Context, name string, _ ...container.RemoveOption) error {
	if err := call(ctx, p.remove); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.boxes[name]; b != nil {
		close(b.gone)
		delete(p.boxes, name)
	}
	p.removed = append(p.removed, name)
	return nil
}

func (p *fakeProvider) Get(context.Context, string) (container.Info, error) {
	return container.Info{}, container.ErrNotFound
}

func (p *fakeProvider) List(ctx context.Context, _ map[string]string) ([]container.Info, error) {
	if err := call(ctx, p.listing); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, nil
}

// show makes List return these.
func (p *fakeProvider) show(boxes ...container.Info) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = boxes
}
func (p *fakeProvider) Check(ctx context.Context) error { return call(ctx, p.check) }
func (p *fakeProvider) Close() error                    { return nil }

// call calls a hook, and honors a dead context as every provider does.
func call(ctx context.Context, hook func(context.Context) error) error {
	if hook != nil {
		return hook(ctx)
	}
	return ctx.Err()
}

// hang waits for the end of the context.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

type fakeBox struct {
	p     *fakeProvider
	spec  container.Spec
	files container.Files
	gone  chan struct{}
}

func (b *fakeBox) Start(ctx context.Context) error { return call(ctx, b.p.start) }
func (b *fakeBox) Files() container.Files          { return b.files }
func (b *fakeBox) Done() <-chan struct{}           { return b.gone }

func (b *fakeBox) Stop(ctx context.Context, _ time.Duration) error { return b.Remove(ctx) }

func (b *fakeBox) Remove(ctx context.Context, opts ...container.RemoveOption) error {
	return b.p.Remove(ctx, b.spec.Name, opts...)
}

func (b *fakeBox) Info() container.Info {
	return container.Info{ID: "id-" + b.spec.Name, Name: b.spec.Name, Labels: b.spec.Labels, State: container.StateRunning}
}

// Exec does what the command's words say: "say X", "exit N", "sleep D", "oom",
// "stubborn" (ignores TERM), "touch F", "lost" (the box dies), "panic".
func (b *fakeBox) Exec(ctx context.Context, cmd container.Command) (container.Exit, error) {
	if b.p.exec != nil {
		return b.p.exec(ctx, b, cmd)
	}
	if ctx.Err() != nil {
		return container.Exit{}, errors.New("exec on a dead context")
	}
	var timeout <-chan time.Time
	if cmd.Timeout > 0 {
		timeout = time.After(cmd.Timeout)
	}
	e := container.Exit{CPU: time.Millisecond, MaxRSS: 1 << 20}
	for word := range strings.SplitSeq(cmd.Args[len(cmd.Args)-1], ";") {
		verb, arg, _ := strings.Cut(strings.TrimSpace(word), " ")
		switch verb {
		case "say":
			e.Output += int64(len(arg) + 1)
			cmd.Output(container.Stdout, []byte(arg+"\n"))
		case "exit":
			_, _ = fmt.Sscan(arg, &e.Code)
			return e, nil
		case "oom":
			e.Code, e.Signal, e.OOM = 137, "SIGKILL", true
			return e, nil
		case "touch":
			if err := b.files.Write(ctx, arg, strings.NewReader(arg), 0o644); err != nil {
				return e, err
			}
		case "panic":
			panic("the adapter is broken")
		case "lost":
			return container.Exit{}, container.ErrBoxLost
		case "sleep", "stubborn":
			d, _ := time.ParseDuration(arg)
			ended, err := b.sleep(ctx, d, timeout, &e, verb == "stubborn", cmd.Grace)
			if ended || err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

func (b *fakeBox) sleep(ctx context.Context, d time.Duration, timeout <-chan time.Time, e *container.Exit,
	stubborn bool, grace time.Duration,
) (ended bool, err error) {
	select {
	case <-time.After(d):
		return false, nil
	case <-b.gone:
		return true, container.ErrStopped
	case <-timeout:
		e.TimedOut = true
	case <-ctx.Done():
		e.Canceled = true
	}
	e.Code, e.Signal = 143, "SIGTERM"
	if stubborn {
		select {
		case <-time.After(grace):
		case <-b.gone:
			return true, container.ErrStopped
		}
		e.Code, e.Signal = 137, "SIGKILL"
	}
	return true, nil
}
