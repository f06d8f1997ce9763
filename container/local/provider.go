package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway/container"
)

// Config says where boxes live.
type Config struct {
	// AllowLocal must be set: a person confirms by it that there is no isolation.
	AllowLocal bool
	// Dir holds the boxes' folders; it is made if missing. Default: the system's folder for temporary files.
	Dir string
}

// Provider is a container.Provider without containers. It knows the boxes that it made itself, and what is left of those of
// dead workers, which have ended with these.
type Provider struct {
	dir     string
	program *program

	mu       sync.Mutex
	boxes    map[string]*sandbox
	removals map[*sandbox]*removal
	closed   bool
}

// removal is one destruction of a box. All callers that remove the box meanwhile share it. It does not end with
// their contexts: a supervisor that was told to end does so in its own time, and the box is gone in the end.
type removal struct {
	done chan struct{}
	err  error
}

var _ container.Provider = (*Provider)(nil)

// ErrNotAllowed is returned by New if Config.AllowLocal is not set. It matches container.ErrDenied.
var ErrNotAllowed = fmt.Errorf("%w: jobs would run without isolation, as processes of this machine; --allow-local (allow_local) permits that", container.ErrDenied)

// New returns a Provider. It does no I/O beyond unpacking the supervisor into memory. Errors: ErrNotAllowed;
// container.ErrUnsupported on anything but Linux on amd64 or arm64.
func New(cfg Config) (*Provider, error) {
	if !cfg.AllowLocal {
		return nil, ErrNotAllowed
	}
	program, err := newProgram()
	if err != nil {
		return nil, fmt.Errorf("run jobs without isolation: %w", err)
	}
	dir := cfg.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		program.close()
		return nil, fmt.Errorf("find folder for boxes: %w", err)
	}
	return &Provider{dir: dir, program: program, boxes: map[string]*sandbox{}, removals: map[*sandbox]*removal{}}, nil
}

// Prepare has nothing to do: the image is this machine.
func (p *Provider) Prepare(ctx context.Context, req container.ImageRequest) (container.Image, error) {
	return container.Image{ID: "local", Digest: "local"}, context.Cause(ctx)
}

// Create makes the folder of a box. See container.Provider.
func (p *Provider) Create(ctx context.Context, spec container.Spec) (container.Sandbox, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	spec, err := p.complete(spec)
	if err != nil {
		return nil, err
	}
	if err := p.replace(ctx, spec.Name); err != nil {
		return nil, err
	}
	box, err := p.create(spec)
	if err != nil {
		return nil, fmt.Errorf("create box %s: %w", spec.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[spec.Name] != nil || p.closed {
		return nil, errors.Join(fmt.Errorf("create box %s: %w", spec.Name, container.ErrExists), os.RemoveAll(box.root), box.lock.Close())
	}
	p.boxes[spec.Name] = box
	return box, nil
}

// complete fills the defaults, and refuses a user that this process can't become.
func (p *Provider) complete(spec container.Spec) (container.Spec, error) {
	if err := spec.Validate(); err != nil {
		return spec, err
	}
	if spec.FromImage {
		return spec, fmt.Errorf("workspace from the image: %w without isolation: there is no image", container.ErrUnsupported)
	}
	own := container.User{UID: os.Geteuid(), GID: os.Getegid()}
	asked := spec.User
	if own.UID != 0 && (asked == own || asked == container.DefaultUser) {
		spec.User = container.User{}
	}
	spec.Workdir = "" // chosen here
	spec, err := spec.WithDefaults()
	if err != nil || own.UID == 0 {
		return spec, err
	}
	if asked != (container.User{}) && asked != own && asked != container.DefaultUser {
		return spec, fmt.Errorf("user %d:%d: %w without isolation: this worker runs as %d:%d and can't change that",
			asked.UID, asked.GID, container.ErrUnsupported, own.UID, own.GID)
	}
	spec.User = own
	return spec, nil
}

// replace removes a box of that name that was never started, or has ended. A running one is ErrExists.
func (p *Provider) replace(ctx context.Context, name string) error {
	box := p.find(name)
	if box == nil {
		return nil
	}
	if box.Info().State == container.StateRunning {
		return fmt.Errorf("create box %s: %w: it is running", name, container.ErrExists)
	}
	return p.Remove(ctx, name)
}

// create makes the folders. The supervisor lets its commands' user into them.
func (p *Provider) create(spec container.Spec) (*sandbox, error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(p.dir, rootPrefix+spec.Name+"-")
	if err != nil {
		return nil, err
	}
	box := newBox(p, spec, root)
	if err = os.Chmod(root, 0o711); err == nil {
		err = errors.Join(os.Mkdir(box.work(), 0o755), os.Mkdir(box.tmp(), 0o755))
	}
	if err == nil {
		box.lock, err = claim(root, box.info)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	return box, nil
}

// Remove ends the box called name and removes its folder. Its holder sees ErrBoxLost. See container.Provider.
func (p *Provider) Remove(ctx context.Context, name string, _ ...container.RemoveOption) error {
	if box := p.find(name); box != nil {
		return p.remove(ctx, box)
	}
	return p.removeRemains(ctx, name)
}

// remove has box destroyed, and waits for that until ctx ends.
func (p *Provider) remove(ctx context.Context, box *sandbox) error {
	r := p.removal(box)
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("remove box %s: not gone yet: %w", box.spec.Name, context.Cause(ctx))
	}
}

// removal returns the one that is under way, or begins one. Close waits for it.
func (p *Provider) removal(box *sandbox) *removal {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.removals[box]
	if r == nil {
		r = &removal{done: make(chan struct{})}
		p.removals[box] = r
		go func() {
			defer close(r.done)
			r.err = box.destroy()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.removals, box)
		}()
	}
	return r
}

// Get describes the box called name, if this Provider made it.
func (p *Provider) Get(_ context.Context, name string) (container.Info, error) {
	if box := p.find(name); box != nil {
		return box.Info(), nil
	}
	return container.Info{}, fmt.Errorf("box %s: %w", name, container.ErrNotFound)
}

// List describes the boxes of this Provider, and what is left of those of dead workers, that carry all the given labels.
func (p *Provider) List(_ context.Context, labels map[string]string) ([]container.Info, error) {
	infos := p.own()
	err := p.dead(func(r *remains) {
		infos = append(infos, container.Info{
			ID: filepath.Base(r.root), Name: r.Name, State: container.StateRemains, Labels: r.Labels, CreatedAt: r.Created,
			Workdir: filepath.Join(r.root, workName),
		})
	})
	return slices.DeleteFunc(infos, func(i container.Info) bool { return !i.Carries(labels) }), err
}

func (p *Provider) own() []container.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var infos []container.Info
	for _, box := range p.boxes {
		infos = append(infos, box.Info())
	}
	return infos
}

// Check makes sure that boxes can have folders.
func (p *Provider) Check(context.Context) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("folder for boxes: %w", err)
	}
	probe, err := os.MkdirTemp(p.dir, "slipway-check-")
	if err != nil {
		return fmt.Errorf("folder for boxes: %w", err)
	}
	return os.Remove(probe)
}

// Close waits for the removals that are under way, and frees the supervisor's program. Boxes that run go on; no new
// one can start.
func (p *Provider) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	removals := slices.Collect(maps.Values(p.removals))
	p.mu.Unlock()
	for _, r := range removals {
		<-r.done
	}
	if first {
		p.program.close()
	}
	return nil
}

func (p *Provider) find(name string) *sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boxes[name]
}

func (p *Provider) forget(box *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[box.spec.Name] == box {
		delete(p.boxes, box.spec.Name)
	}
}

func newBox(p *Provider, spec container.Spec, root string) *sandbox {
	b := &sandbox{p: p, spec: spec, root: root, done: make(chan struct{})}
	labels := maps.Clone(spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[container.LabelProduct] = container.Product
	labels[container.LabelBox] = spec.Name
	b.info = container.Info{
		ID: filepath.Base(root), Name: spec.Name, State: container.StateCreated, Labels: labels,
		CreatedAt: time.Now(), Workdir: b.work(),
	}
	return b
}
