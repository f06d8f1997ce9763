package box

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/container/mock"
)

func TestReapable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	f := fleet(mock.New(t), "w1")
	unknown := fleet(mock.New(t), "w1").self.labels() // one name, as a worker of another queue may have, on another host
	unknown[container.LabelHost] = "elsewhere"
	alive := fleet(mock.New(t), "w2").self.labels() // in this very process
	box := func(s container.State, of map[string]string, age, left time.Duration) container.Info {
		labels := maps.Clone(of)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[container.LabelWorker] = "w1"
		labels[container.LabelExpires] = strconv.FormatInt(now.Add(left).Unix(), 10)
		return container.Info{Name: "slipway-x-1", State: s, CreatedAt: now.Add(-age), Labels: labels}
	}
	noLabels := box(container.StateRunning, nil, time.Hour, 0)
	noLabels.Labels = nil
	noTime := box(container.StateExited, unknown, 0, time.Hour)
	noTime.CreatedAt = time.Time{}
	const h, m, s = time.Hour, time.Minute, time.Second
	tests := []struct {
		name string
		box  container.Info
		want string
	}{
		{"running", box(container.StateRunning, unknown, 20*h, h), ""},
		{"running, of a worker in this process", box(container.StateRunning, alive, 20*h, h), ""},
		{"running, expired", box(container.StateRunning, alive, 20*h, -h), "expired"},
		{"running, no label", noLabels, ""},
		{"running, of this worker", box(container.StateRunning, f.self.labels(), s, h), "left over"},
		{"volume, of this worker", box(container.StateRemains, f.self.labels(), s, h), "left over"},
		{"new", box(container.StateCreated, unknown, m, h), ""},
		{"never started", box(container.StateCreated, unknown, 6*m, h), "never started"},
		{"never started, of a worker in this process", box(container.StateCreated, alive, 6*m, h), "never started"},
		{"just exited", box(container.StateExited, unknown, m, h), ""},
		{"exited", box(container.StateExited, unknown, 6*m, h), "exited"},
		{"volume, of a creation in flight", box(container.StateRemains, unknown, m, h), ""},
		{"volume", box(container.StateRemains, unknown, 6*m, h), "its box is gone"},
		{"volume of before there were owners", box(container.StateRemains, nil, 6*m, h), "its box is gone"},
		{"no time", noTime, ""},
	}
	for _, tt := range tests {
		if got := f.reapable(tt.box, now); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestExpiry: on a host whose clock is fast a box counts as expired not before its lifetime is over.
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		b := fleet(p, "w1").Box(Owner{Name: "slipway-x-1", Key: container.LabelJob, Value: "x", Fence: 1})
		spec := container.Spec{Name: "slipway-x-1", Image: "i", Lifetime: time.Hour}
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		made, box := time.Now(), b.Sandbox().Info()
		other := fleet(p, "another")
		const fast = 5*time.Minute - time.Second
		if why := other.reapable(box, made.Add(spec.Lifetime+fast)); why != "" {
			t.Errorf("a clock that is %s fast finds the box %s", fast, why)
		}
		if why := other.reapable(box, made.Add(spec.Lifetime+6*time.Minute)); why != "expired" {
			t.Errorf("got %q after its lifetime, want expired", why)
		}
		b.Remove(t.Context())
	})
}

// TestReap_OneName: two workers of one name, on one engine, leave each other's boxes alone for as long as these run, at any age.
func TestReap_OneName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		a, b := fleet(p, "worker-1"), fleet(p, "worker-1")
		mine := start(t, a, owner("slipway-x-1", 1))
		<-time.After(30 * time.Minute)
		if reaped, left, err := b.Reap(t.Context()); reaped != 0 || left != 0 || err != nil {
			t.Errorf("reaped %d, left %d, %v; want the other worker's box alone", reaped, left, err)
		}
		if got := p.Alive(); len(got) != 1 {
			t.Errorf("got boxes %v, want the one that runs", got)
		}
		mine.Remove(t.Context())
	})
}

// TestReap_Owner: a box that its owner removes while a round looks at the engine is the owner's, not reaped.
func TestReap_Owner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lateList{Provider: mock.New(t)}
		f := fleet(p, "w1")
		b := start(t, f, owner("slipway-x-1", 1))
		p.listed = func() { b.Remove(t.Context()) }
		if reaped, left, err := f.Reap(t.Context()); reaped != 0 || left != 0 || err != nil {
			t.Errorf("reaped %d, left %d, %v; want none", reaped, left, err)
		}
	})
}

// lateList does something between the engine's answer and its arrival.
type lateList struct {
	container.Provider
	listed func()
}

func (p *lateList) List(ctx context.Context, labels map[string]string) ([]container.Info, error) {
	infos, err := p.Provider.List(ctx, labels)
	if p.listed != nil {
		p.listed()
	}
	return infos, err
}
