package box

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"slipway/container"
	"slipway/container/mock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet makes a Fleet whose removals may take a minute.
func fleet(p container.Provider, worker string) *Fleet {
	return NewFleet(Config{
		Provider: p, Worker: worker, Log: zap.NewNop(),
		Cleanup: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		},
		Removed: func(time.Duration, error) {},
	})
}

func owner(name string, fence uint64) Owner {
	return Owner{Name: name, Key: container.LabelJob, Value: "x", Labels: map[string]string{container.LabelAttempt: "3"}, Fence: fence}
}

var spec = container.Spec{Image: "i", Lifetime: time.Hour}

// start makes a box and starts it.
func start(t *testing.T, f *Fleet, o Owner) *Box {
	t.Helper()
	b := f.Box(o)
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBox_Labels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, fleet(mock.New(t), "w1"), owner("slipway-x-3", 1))
		defer b.Remove(t.Context())
		info := b.Sandbox().Info()
		want := map[string]string{
			container.LabelProduct: container.Product, container.LabelWorker: "w1", container.LabelJob: "x",
			container.LabelAttempt: "3", container.LabelFence: "1",
		}
		if !info.Carries(want) || info.Name != "slipway-x-3" {
			t.Errorf("got %s with %v, want %v", info.Name, info.Labels, want)
		}
	})
}

// TestBox_OutlivesItsUsers: a box of a session serves one attempt after the other; only its owner removes it.
func TestBox_OutlivesItsUsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		session := Owner{Name: "slipway-session-1", Key: "io.example.session", Value: "s1", Fence: 1}
		b := start(t, fleet(p, "w1"), session)
		for range 2 {
			hold, drop := context.WithCancel(t.Context())
			if exit, err := b.Sandbox().Exec(hold, container.Command{Args: []string{"true"}}); err != nil || exit.Code != 0 {
				t.Errorf("got %+v, %v", exit, err)
			}
			drop()
		}
		if got := p.Alive(); len(got) != 1 {
			t.Errorf("got boxes %v, want the session's", got)
		}
		b.Remove(t.Context())
	})
}

// TestBox_RemoveOnce: everybody who removes waits for the end of it; it happens and is counted once.
func TestBox_RemoveOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		f := fleet(p, "w1")
		var count, ended atomic.Int32
		f.cfg.Removed = func(took time.Duration, err error) {
			count.Add(1)
			if took != time.Second || err != nil {
				t.Errorf("got %s, %v; want a second and no error", took, err)
			}
		}
		p.Fail(mock.Fault{At: mock.OnRemove, Delay: time.Second})
		b := start(t, f, owner("slipway-x-1", 1))
		for range 3 {
			go func() { b.Remove(t.Context()); ended.Add(1) }()
		}
		<-time.After(time.Second - time.Millisecond)
		if ended.Load() != 0 {
			t.Error("a call came back before the box was gone")
		}
		<-time.After(2 * time.Millisecond)
		if ended.Load() != 3 || count.Load() != 1 {
			t.Errorf("%d calls ended, %d removals; want 3 and 1", ended.Load(), count.Load())
		}
	})
}

// TestBox_RemoveOutlivesItsContext: teardown comes after the end of what it undoes.
func TestBox_RemoveOutlivesItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		b := start(t, fleet(p, "w1"), owner("slipway-x-1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.Remove(ctx)
		if got := p.Alive(); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// TestBox_NeverAskedFor: an owner that never got as far as a box asks the engine for nothing.
func TestBox_NeverAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		p.Fail(mock.Fault{At: mock.OnRemove, Err: container.ErrEngineUnavailable})
		f := fleet(p, "w1")
		f.cfg.Removed = func(took time.Duration, err error) {
			if took != 0 || err != nil {
				t.Errorf("got %s, %v; want nothing to do", took, err)
			}
		}
		f.Box(owner("slipway-x-1", 1)).Remove(t.Context())
	})
}

// TestBox_MadeAllTheSame: an engine that answers with an error may have made the box; it is removed by its name.
func TestBox_MadeAllTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		p.Fail(mock.Fault{At: mock.OnCreate, Err: container.ErrEngineUnavailable, Happened: true})
		b := fleet(p, "w1").Box(owner("slipway-x-1", 1))
		if err := b.Start(t.Context(), spec); !errors.Is(err, container.ErrEngineUnavailable) || b.Sandbox() != nil {
			t.Errorf("got %v and sandbox %v, want ErrEngineUnavailable and none", err, b.Sandbox())
		}
		b.Remove(t.Context())
		if got := p.Alive(); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// TestBox_GivesUp: a box that can't be removed is told, and is the reaper's from then on.
func TestBox_GivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		f := fleet(p, "w1")
		var told error
		f.cfg.Removed = func(_ time.Duration, err error) { told = err }
		b := start(t, f, owner("slipway-x-1", 1))
		p.Fail(mock.Fault{At: mock.OnRemove, Err: container.ErrEngineUnavailable, Times: 16})
		if n, left, err := f.Reap(t.Context()); n != 0 || left != 0 || err != nil {
			t.Errorf("reaped %d, left %d, %v, while its owner has it", n, left, err)
		}
		began := time.Now()
		b.Remove(t.Context())
		if took := time.Since(began); !errors.Is(told, container.ErrEngineUnavailable) || took > time.Minute+maxRemoveBackoff {
			t.Errorf("told of %v after %s, want ErrEngineUnavailable after a minute", told, took)
		}
		p.Fail(mock.Fault{At: mock.OnRemove, Err: container.ErrEngineUnavailable, Times: 1})
		if n, left, err := f.Reap(t.Context()); n != 0 || left != 1 || err != nil {
			t.Errorf("reaped %d, left %d, %v; want it counted as left while the engine is away", n, left, err)
		}
		if n, left, err := f.Reap(t.Context()); n != 1 || left != 0 || err != nil {
			t.Errorf("reaped %d, left %d, %v; want what the removal left", n, left, err)
		}
	})
}

// TestBox_EarlierOwners: boxes with a lower fence of the same thing are removed before the new one is made.
func TestBox_EarlierOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		dead := fleet(p, "dead")
		start(t, dead, owner("slipway-x-1", 4))
		other := owner("slipway-y-1", 1)
		other.Value = "y"
		keep := start(t, dead, other)
		later := start(t, dead, owner("slipway-x-9", 9))
		f := fleet(p, "w1")
		mine := start(t, f, owner("slipway-x-5", 5))
		got := p.Alive()
		slices.Sort(got)
		if want := []string{"slipway-x-5", "slipway-x-9", "slipway-y-1"}; !slices.Equal(got, want) {
			t.Errorf("got boxes %v, want %v", got, want)
		}
		for _, b := range []*Box{keep, later, mine} {
			b.Remove(t.Context())
		}
	})
}

func TestBox_Watch(t *testing.T) {
	t.Parallel()
	soft, hard := errors.New("soft"), errors.New("hard")
	grace := func(cause error) time.Duration {
		if errors.Is(cause, soft) {
			return time.Minute
		}
		return 0
	}
	tests := []struct {
		name  string
		cause error
		hurry time.Duration // when hurry is closed; 0: never
		want  time.Duration
	}{
		{"at once", hard, 0, 0},
		{"after a grace", soft, 0, time.Minute},
		{"grace cut short", soft, time.Second, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := start(t, fleet(mock.New(t), "w1"), owner("slipway-x-1", 1))
				hold, drop := context.WithCancelCause(t.Context())
				hurry := make(chan struct{})
				stop := b.Watch(hold, grace, hurry)
				defer stop()
				if tt.hurry > 0 {
					time.AfterFunc(tt.hurry, func() { close(hurry) })
				}
				began := time.Now()
				drop(tt.cause)
				<-b.gone
				if got := time.Since(began); got != tt.want {
					t.Errorf("gone after %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestBox_WatchLeavesAnUnmadeBox: the owner that is still making a box removes it itself: the engine may make it late.
func TestBox_WatchLeavesAnUnmadeBox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := fleet(mock.New(t), "w1").Box(owner("slipway-x-1", 1))
		hold, drop := context.WithCancelCause(t.Context())
		stop := b.Watch(hold, func(error) time.Duration { return 0 }, nil)
		drop(errors.New("ended"))
		synctest.Wait()
		stop()
		if !b.begin() {
			t.Error("the watch removed a box that was not made")
		}
	})
}
