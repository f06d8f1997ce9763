package runner

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/job"
)

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNew(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  func(*Config)
		want string // part of the error; "": none
	}{
		{"defaults", func(*Config) {}, ""},
		{"no queue", func(c *Config) { c.Queue = nil }, "Queue is required"},
		{"no provider", func(c *Config) { c.Provider = nil }, "Provider is required"},
		{"name", func(c *Config) { c.Name = "Not A Name" }, "Name"},
		{"prefix without slash", func(c *Config) { c.Prefix = "a" }, "Prefix"},
		{"absolute prefix", func(c *Config) { c.Prefix = "/a/" }, "Prefix"},
		{"prefix", func(c *Config) { c.Prefix = "a/b.c/" }, ""},
		{"slots", func(c *Config) { c.Slots = -1 }, "Slots"},
		{"excerpt", func(c *Config) { c.Excerpt = MaxExcerpt + 1 }, "Excerpt"},
		{"log limit", func(c *Config) { c.StepLogLimit = -1 }, "StepLogLimit"},
		{"timing", func(c *Config) { c.Timing = job.DefaultTiming(); c.Timing.DeadMan = time.Minute }, "dead_man"},
		{"cleanup", func(c *Config) { c.CleanupTimeout = -1 }, "CleanupTimeout"},
		{"pull", func(c *Config) { c.PullTimeout = -1 }, "PullTimeout"},
		{"sync", func(c *Config) { c.SyncTimeout = -1 }, "SyncTimeout"},
		{"backoff", func(c *Config) { c.InfraBackoff = -1 }, "InfraBackoff"},
		{"policy", func(c *Config) { c.Policy.Allow = []container.Relaxation{"everything"} }, "everything"},
		{"resources", func(c *Config) { c.Resources.Memory = 1 << 45 }, "Resources go beyond Policy"},
		{"policy tighter than the defaults", func(c *Config) { c.Policy.Max = container.Resources{CPUs: 0.5, Memory: 1 << 30, Pids: 64} }, ""},
		{"soft stop off", func(c *Config) { c.SoftStop = -1 }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Queue: newFakeQueue(), Provider: newFakeProvider(t)}
			tt.set(&cfg)
			w, err := New(cfg)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.want == "" && job.CheckWorker(w.Name()) != nil:
				t.Errorf("made up the name %q", w.Name())
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error about %q", err, tt.want)
			}
		})
	}
}

func TestNameOn(t *testing.T) {
	t.Parallel()
	tests := []struct{ host, want string }{
		{"node7", "node7"},
		{"Node-7.example.com", "node-7"},
		{"my_host!", "my-host-"},
		{"-edge", "edge"},
		{"", "worker"},
		{"__", "worker"},
		{".example.com", "worker"},
		{strings.Repeat("a", 60), strings.Repeat("a", 48)},
	}
	for _, tt := range tests {
		if got := nameOn(tt.host); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.host, got, tt.want)
		}
	}
	// The longest name and its random part are a name that a queue takes.
	if err := job.CheckWorker(nameOn(strings.Repeat("a", 60)) + "-abcdefgh"); err != nil {
		t.Errorf("got %v, want a name that a queue takes", err)
	}
}

func TestRun_TwoWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue, boxes := newFakeQueue(), newFakeProvider(t)
		var workers []*bundle
		for _, name := range []string{"w1", "w2"} {
			b := &bundle{t: t, queue: queue, boxes: boxes, seen: newObserved()}
			b.cfg = Config{Name: name, Queue: queue, Provider: boxes, Slots: 2, Observer: b.seen}
			b.start()
			workers = append(workers, b)
		}
		var leases []*fakeLease
		for range 4 {
			leases = append(leases, workers[0].put(jobOf(run("sleep 1m"))))
		}
		pass(time.Second)
		if boxes.alive() != 4 {
			t.Errorf("got %d boxes, want 4 at once", boxes.alive())
		}
		workers[0].halt()
		later := workers[1].do(jobOf(run("say a")))
		for _, l := range append(leases, later) {
			workers[1].want(l, job.Succeeded, "")
		}
		workers[1].halt()
		if got := workers[0].seen.get("done succeeded"); got != 2 {
			t.Errorf("the first worker did %d jobs, want 2", got)
		}
		boxes.empty()
	})
}

func TestRun_Slots(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		for range 5 {
			b.put(jobOf(run("sleep 1m")))
		}
		pass(time.Second)
		if b.boxes.alive() != 2 {
			t.Errorf("got %d boxes, want one per slot", b.boxes.alive())
		}
		pass(3 * time.Minute)
		synctest.Wait()
		if b.seen.get("done succeeded") != 5 {
			t.Errorf("got %v, want 5 jobs done", b.seen.count)
		}
		if got := b.seen.slots; slices.Max(got) != 2 || got[len(got)-1] != 0 {
			t.Errorf("got busy slots %v, want up to 2 and at last 0", got)
		}
	})
}

func TestRun_JobRetry(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := jobOf(run("exit 1"))
		j.Retry = job.Retry{Attempts: 2, Backoff: job.Duration(time.Minute)}
		l := b.do(j)
		b.wantRetry(l, job.ClassJob, job.ReasonExit)
		if l.delay != time.Minute || !strings.Contains(l.failure.Message, "exit code 1") {
			t.Errorf("got delay %s, message %q", l.delay, l.failure.Message)
		}
		second := newLease(b, j)
		second.delivery.Counts.Job = 1
		b.queue.leases <- second
		b.wait(second)
		b.want(second, job.Failed, job.ReasonExit)
	})
}

func TestRun_InfraBudget(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := newLease(b, jobOf(run("lost")))
		l.delivery.Counts.Infra = DefaultInfraBudget
		b.queue.leases <- l
		b.wait(l)
		r := b.want(l, job.Errored, job.ReasonInfraBudget)
		if !strings.Contains(r.Message, "box lost") {
			t.Errorf("got message %q, want it to keep the last failure", r.Message)
		}
	})
}

// A worker that dies between the making and the start of a box leaves one without
// a process 1. The next attempt does not leave it to the reaper.
func TestEarlierAttemptsBoxesAreRemoved(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		box := func(name, fence string) container.Info {
			return container.Info{
				Name: name, State: container.StateCreated, CreatedAt: time.Now(),
				Labels: map[string]string{container.LabelFence: fence},
			}
		}
		b.boxes.show(box("slipway-x-1", "6"), box("slipway-x-2", "7"), box("slipway-x-3", "8"), box("slipway-x-4", ""))
		l := b.do(jobOf(run("true"))) // has fence 7
		b.want(l, job.Succeeded, "")
		if got, want := b.boxes.removed, "slipway-x-1"; len(got) == 0 || got[0] != want || slices.ContainsFunc(got, func(s string) bool {
			return strings.HasPrefix(s, "slipway-x-") && s != want
		}) {
			t.Errorf("removed %v; of the boxes called slipway-x-… want %s alone, and before the attempt's own", got, want)
		}
		b.boxes.show()
	})
}

func TestReaper(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := b.put(jobOf(run("sleep 30m")))
		pass(time.Second)
		synctest.Wait()
		mine := b.boxes.specs[0].Name
		old := time.Now().Add(-time.Hour)
		b.boxes.show(
			container.Info{Name: "slipway-dead-1", State: container.StateExited, CreatedAt: old},
			container.Info{Name: "slipway-live-1", State: container.StateRunning, CreatedAt: old},
			container.Info{Name: mine, State: container.StateExited, CreatedAt: old},
		)
		pass(reapInterval)
		synctest.Wait()
		if !slices.Equal(b.boxes.removed, []string{"slipway-dead-1"}) || b.seen.get("reaped") != 1 {
			t.Errorf("removed %v, counted %d; want slipway-dead-1 alone", b.boxes.removed, b.seen.get("reaped"))
		}
		b.boxes.show()
		b.wait(l)
		b.want(l, job.Succeeded, "")
	})
}
