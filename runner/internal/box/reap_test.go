package box

import (
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
	box := func(s container.State, age, left time.Duration) container.Info {
		return container.Info{
			Name: "slipway-x-1", State: s, CreatedAt: now.Add(-age),
			Labels: map[string]string{container.LabelExpires: strconv.FormatInt(now.Add(left).Unix(), 10)},
		}
	}
	noLabel := box(container.StateRunning, time.Hour, 0)
	noLabel.Labels = nil
	own := box(container.StateRunning, time.Hour, time.Hour)
	own.Labels[container.LabelWorker] = "w1"
	tests := []struct {
		name string
		box  container.Info
		want string
	}{
		{"running", box(container.StateRunning, 20*time.Hour, time.Hour), ""},
		{"running, expired", box(container.StateRunning, 20*time.Hour, -time.Hour), "expired"},
		{"running, no label", noLabel, ""},
		{"running, of this worker", own, "left over"},
		{"new", box(container.StateCreated, time.Minute, time.Hour), ""},
		{"never started", box(container.StateCreated, 6*time.Minute, time.Hour), "never started"},
		{"just exited", box(container.StateExited, time.Minute, time.Hour), ""},
		{"exited", box(container.StateExited, 6*time.Minute, time.Hour), "exited"},
		{"no time", container.Info{State: container.StateExited}, ""},
	}
	for _, tt := range tests {
		if got := reapable(tt.box, "w1", now); got != tt.want {
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
		const fast = 5*time.Minute - time.Second
		if why := reapable(box, "another", made.Add(spec.Lifetime+fast)); why != "" {
			t.Errorf("a clock that is %s fast finds the box %s", fast, why)
		}
		if why := reapable(box, "another", made.Add(spec.Lifetime+6*time.Minute)); why != "expired" {
			t.Errorf("got %q after its lifetime, want expired", why)
		}
		b.Remove(t.Context())
	})
}
