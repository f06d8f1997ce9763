package natsqueue

import (
	"slices"
	"testing"
	"time"

	"slipway/job"
)

// A lease counts from the start of the call that confirmed it: an answer that was long on its way confirms the past.
func TestLeaseCountsFromTheStartOfTheCall(t *testing.T) {
	t.Parallel()
	k := &Consumer{cfg: ConsumerConfig{Worker: "w1"}, boot: "b", running: map[job.ID]*lease{}, presence: &presence{changed: make(chan struct{}, 1)}}
	rec := &record{State: job.StateRunning, Owner: "w1", Boot: "b", Fence: 1}
	l := k.newLease(token{}, nil, version{rec: rec, rev: 1}, time.Now().Add(-time.Hour))
	if l.fresh(time.Minute) {
		t.Error("a claim that began an hour ago: got fresh, want not")
	}
	if err := l.confirm(version{rec: rec, rev: 1}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if l.fresh(time.Minute) {
		t.Error("a call that began an hour ago: got fresh, want not")
	}
	if err := l.confirm(version{rec: rec, rev: 1}, time.Now()); err != nil || !l.fresh(time.Minute) {
		t.Errorf("a call that began now: got %v, fresh %t; want it fresh", err, l.fresh(time.Minute))
	}
}

// A redelivery is adopted while the lease lives, or its holder ends it, and is a lost lease afterwards.
func TestAdopt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		state leaseState
		age   time.Duration
		want  bool
	}{
		{"held", held, 0, true},
		{"held, unconfirmed", held, time.Hour, false},
		{"ending, unconfirmed", ending, time.Hour, true},
		{"ended", ended, 0, false},
		{"gone", gone, 0, false},
	} {
		k := &Consumer{running: map[job.ID]*lease{}, presence: &presence{changed: make(chan struct{}, 1)}}
		l := &lease{k: k, state: tt.state, confirmed: time.Now().Add(-tt.age)}
		k.running[""] = l
		if got := l.adopt(nil, time.Minute); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
		if still := k.lease("") != nil; still != tt.want {
			t.Errorf("%s: on the running list: got %t, want %t", tt.name, still, tt.want)
		}
	}
}

// Each mode is delivered once, and an abort is never turned back into a cancel.
func TestDeliver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		push, wants []job.CancelMode
	}{
		{"both", []job.CancelMode{job.Cancel, job.Abort}, []job.CancelMode{job.Cancel, job.Abort}},
		{"twice", []job.CancelMode{job.Cancel, job.Cancel}, []job.CancelMode{job.Cancel}},
		{"back", []job.CancelMode{job.Abort, job.Cancel, job.Abort}, []job.CancelMode{job.Abort}},
		{"unknown", []job.CancelMode{0, job.Abort + 1}, nil},
	} {
		l := &lease{canceled: make(chan job.CancelMode, 8)}
		for _, mode := range tt.push {
			l.deliver(mode)
		}
		close(l.canceled)
		var got []job.CancelMode
		for mode := range l.canceled {
			got = append(got, mode)
		}
		if !slices.Equal(got, tt.wants) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.wants)
		}
	}
}

// A worker renews its entry often enough, and a box dies before its lease can be given away.
func TestDerivedClocks(t *testing.T) {
	t.Parallel()
	c := Config{Timing: job.DefaultTiming()}
	if got := c.workerTTL(); got != c.Timing.DeadMan || got >= c.Timing.Lease {
		t.Errorf("lifetime of a worker's entry: got %s, want the box's, %s, below the lease", got, c.Timing.DeadMan)
	}
	if got := c.longDelay(); got != time.Minute {
		t.Errorf("long delay: got %s, want a minute", got)
	}
	c.Timing.AckWait, c.Timing.DeadMan = 2*time.Second, 600*time.Millisecond
	if got := c.longDelay(); got != 2*time.Second {
		t.Errorf("long delay with short clocks: got %s, want AckWait", got)
	}
	if got := c.workerTTL(); got != time.Second {
		t.Errorf("lifetime with short clocks: got %s, want the server's least, 1s", got)
	}
}
