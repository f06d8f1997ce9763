package mock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/container"
)

// Provider makes boxes in memory. It is a container.Provider. All methods are safe
// for concurrent use.
type Provider struct {
	t       Test
	lenient bool

	mu      sync.Mutex
	scripts []*script
	faults  []*Fault
	images  map[string]container.Image
	boxes   map[string]*sandbox // by name
	calls   []Call
	next    int
}

var _ container.Provider = (*Provider)(nil)

// Call is one call that the provider or a box of its got.
type Call struct {
	At     Point
	Name   string // of the box or the image
	Detail string // of a command: its words; of a file operation: its name and path
	Time   time.Time
}

// Test is what the mock uses of a *testing.T.
type Test interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// New returns a Provider that fails t for misuse and for a box that is left when t ends. Outside of a test, such
// as in a program's demonstration mode, t is nil: then the Provider is Lenient, and its user removes the boxes.
func New(t Test) *Provider {
	p := &Provider{t: t, lenient: t == nil, images: map[string]container.Image{}, boxes: map[string]*sandbox{}}
	if t != nil {
		t.Cleanup(p.verify)
	}
	return p
}

// Lenient makes p answer to misuse with errors only, as a real provider does, and
// returns p. Call it before p is used.
func (p *Provider) Lenient() *Provider {
	p.lenient = true
	return p
}

// verify fails the test for every box that is left.
func (p *Provider) verify() {
	p.mu.Lock()
	left := slices.Sorted(maps.Keys(p.boxes))
	boxes := slices.Collect(maps.Values(p.boxes))
	p.mu.Unlock()
	for _, b := range boxes {
		b.die(container.ErrBoxLost)
	}
	if len(left) > 0 && !p.lenient {
		p.t.Errorf("mock: boxes left at the end of the test: %s", strings.Join(left, ", "))
	}
}

func (p *Provider) misuse(format string, args ...any) {
	if p.lenient {
		return
	}
	p.t.Helper()
	p.t.Errorf("mock: misuse: "+format, args...)
}

// Calls returns what was called so far, in order.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Commands returns the words of every command that was run so far, in order of their start.
func (p *Provider) Commands() []string {
	var out []string
	for _, c := range p.Calls() {
		if c.At == OnExec {
			out = append(out, c.Detail)
		}
	}
	return out
}

// Alive returns the names of the boxes that exist, sorted.
func (p *Provider) Alive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.boxes))
}

// Lose ends the box called name behind its holder's back. It reports whether there was one.
func (p *Provider) Lose(name string) bool {
	b, ok := p.find(name)
	if ok {
		b.die(container.ErrBoxLost)
	}
	return ok
}

func (p *Provider) find(name string) (*sandbox, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[name]
	return b, ok
}

// Prepare knows every image, unless AddImage or Fail say otherwise. See container.Provider.
func (p *Provider) Prepare(ctx context.Context, req container.ImageRequest) (container.Image, error) {
	p.record(OnPrepare, req.Image, string(req.Pull))
	if _, err := p.fault(ctx, OnPrepare); err != nil {
		return container.Image{}, fmt.Errorf("prepare image %s: %w", req.Image, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.images) == 0 {
		return container.Image{ID: "mock:" + req.Image, Digest: req.Image + "@sha256:" + strings.Repeat("0", 64)}, nil
	}
	img, ok := p.images[req.Image]
	if !ok {
		return container.Image{}, fmt.Errorf("prepare image %s: %w", req.Image, container.ErrImageNotFound)
	}
	return img, nil
}

// AddImage makes img known as name. From the first on, an image that was not added is not found.
func (p *Provider) AddImage(name string, img container.Image) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images[name] = img
}

// Create makes a box. See container.Provider.
func (p *Provider) Create(ctx context.Context, spec container.Spec) (container.Sandbox, error) {
	p.record(OnCreate, spec.Name, spec.Image)
	spec, err := spec.WithDefaults()
	if err != nil {
		return nil, err
	}
	fault, faultErr := p.fault(ctx, OnCreate)
	if faultErr != nil && !fault.Happened {
		return nil, fmt.Errorf("create box %s: %w", spec.Name, faultErr)
	}
	b, err := p.add(spec)
	if err != nil {
		return nil, err
	}
	if faultErr != nil { // the engine made it all the same
		return nil, fmt.Errorf("create box %s: %w", spec.Name, faultErr)
	}
	return b, nil
}

func (p *Provider) add(spec container.Spec) (*sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.boxes[spec.Name]; ok {
		if old.Info().State == container.StateRunning {
			p.misuse("box %s is created while it runs", spec.Name)
			return nil, fmt.Errorf("create box %s: %w and runs", spec.Name, container.ErrExists)
		}
		old.die(container.ErrStopped)
	}
	p.next++
	b := newBox(p, spec, "mock-"+strconv.Itoa(p.next))
	p.boxes[spec.Name] = b
	return b, nil
}

// Remove destroys the box called name. See container.Provider.
func (p *Provider) Remove(ctx context.Context, name string, _ ...container.RemoveOption) error {
	p.record(OnRemove, name, "")
	if _, err := p.fault(ctx, OnRemove); err != nil {
		return fmt.Errorf("remove box %s: %w", name, err)
	}
	if b, ok := p.find(name); ok {
		b.die(container.ErrBoxLost)
		b.running.Wait()
		p.drop(b)
	}
	return nil
}

// drop forgets b, unless another one has its name by now.
func (p *Provider) drop(b *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[b.spec.Name] == b {
		delete(p.boxes, b.spec.Name)
	}
}

// Get describes the box called name. See container.Provider.
func (p *Provider) Get(ctx context.Context, name string) (container.Info, error) {
	p.record(OnGet, name, "")
	if _, err := p.fault(ctx, OnGet); err != nil {
		return container.Info{}, fmt.Errorf("find box %s: %w", name, err)
	}
	b, ok := p.find(name)
	if !ok {
		return container.Info{}, fmt.Errorf("find box %s: %w", name, container.ErrNotFound)
	}
	return b.Info(), nil
}

// List describes every box that carries all the given labels, sorted by name. See container.Provider.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]container.Info, error) {
	p.record(OnList, "", "")
	if _, err := p.fault(ctx, OnList); err != nil {
		return nil, fmt.Errorf("list boxes: %w", err)
	}
	p.mu.Lock()
	boxes := slices.Collect(maps.Values(p.boxes))
	p.mu.Unlock()
	infos := []container.Info{}
	for _, b := range boxes {
		if info := b.Info(); info.Carries(labels) {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b container.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// Check fails only if Fail says so. See container.Provider.
func (p *Provider) Check(ctx context.Context) error {
	p.record(OnCheck, "", "")
	_, err := p.fault(ctx, OnCheck)
	return err
}

// Close does nothing.
func (p *Provider) Close() error { return nil }

func (p *Provider) record(at Point, name, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, Call{at, name, detail, time.Now()})
}
