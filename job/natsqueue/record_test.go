package natsqueue

import (
	"testing"
	"time"

	"slipway/job"
)

// A replica that is behind must never make a holder believe that its lease is lost.
func TestOlderThan(t *testing.T) {
	t.Parallel()
	running, done := &record{State: job.StateRunning}, &record{State: job.StateDone}
	tests := []struct {
		name        string
		read, known version
		want        bool
	}{
		{"older", version{running, 3}, version{running, 4}, true},
		{"the same", version{running, 4}, version{running, 4}, false},
		{"newer", version{done, 5}, version{running, 4}, false},
		{"not there yet", version{}, version{running, 4}, true},
		{"removed by a person", version{nil, 5}, version{running, 4}, false},
		{"expired", version{}, version{done, 4}, false},
		{"nothing known", version{}, version{}, false},
		{"first sight", version{running, 4}, version{}, false},
	}
	for _, tt := range tests {
		if got := tt.read.olderThan(tt.known); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// A claim of a job that ran charges the death to its worker, or the lost lease to this one, says so in the last failure, and
// begins the next attempt with the next fence.
func TestInherit(t *testing.T) {
	t.Parallel()
	k := &Consumer{cfg: ConsumerConfig{Worker: "w1"}, boot: "b1"}
	for _, tt := range []struct {
		name    string
		state   job.State
		owner   string
		boot    string
		was     owner
		counts  job.Counts
		failure string
	}{
		{"one that waited", job.StateQueued, "", "", ownerGone, job.Counts{Job: 1, Infra: 2, Crash: 3}, "of before"},
		{"its own", job.StateRunning, "w1", "b1", ownerIdles, job.Counts{Job: 1, Infra: 3, Crash: 3}, "worker w1 lost its lease"},
		{"its predecessor's", job.StateRunning, "w1", "b0", ownerGone, job.Counts{Job: 1, Infra: 2, Crash: 4}, "worker w1 died"},
		{"another's, which died", job.StateRunning, "w2", "b1", ownerGone, job.Counts{Job: 1, Infra: 2, Crash: 4}, "worker w2 died"},
		{"another's, which lives", job.StateRunning, "w2", "b1", ownerIdles, job.Counts{Job: 1, Infra: 3, Crash: 3}, "worker w2 lost its lease"},
	} {
		rec := &record{
			State: tt.state, Owner: tt.owner, Boot: tt.boot, Fence: 7, Attempt: 4, Counts: job.Counts{Job: 1, Infra: 2, Crash: 3},
			LastFailure: &job.Failure{Outcome: job.Failed, Message: "of before"}, StartedAt: time.Unix(1, 0),
		}
		got := k.inherit(rec, tt.was)
		if got.State != job.StateRunning || got.Owner != "w1" || got.Boot != "b1" || got.Fence != 8 || got.Attempt != 5 || time.Since(got.StartedAt) > time.Minute {
			t.Errorf("%s: got %+v, want the next attempt of w1, begun now", tt.name, got)
		}
		if got.Counts != tt.counts || got.LastFailure.Message != tt.failure || (got.LastFailure.Reason == job.ReasonLeaseLost) != (tt.state == job.StateRunning) {
			t.Errorf("%s: got %+v and %+v, want %+v and %q", tt.name, got.Counts, got.LastFailure, tt.counts, tt.failure)
		}
		if rec.Fence != 7 || rec.LastFailure.Message != "of before" {
			t.Errorf("%s: the record that was read is changed: %+v", tt.name, rec)
		}
	}
}

// A write whose confirmation was lost counts as this lease's only if the record bears its fence: this process may have lost
// the job, claimed it anew, and ended that claim.
func TestEndedByThisLease(t *testing.T) {
	t.Parallel()
	l := &lease{k: &Consumer{boot: "b1"}, d: job.Delivery{Fence: 7}}
	for _, tt := range []struct {
		name string
		rec  record
		want bool
	}{
		{"given back", record{State: job.StateQueued, Fence: 7, Boot: "b1"}, true},
		{"decided", record{State: job.StateDone, Fence: 7, Boot: "b1"}, true},
		{"not written yet", record{State: job.StateRunning, Fence: 7, Boot: "b1"}, false},
		{"by a later claim of this process", record{State: job.StateDone, Fence: 8, Boot: "b1"}, false},
		{"by another process", record{State: job.StateDone, Fence: 7, Boot: "b2"}, false},
	} {
		if got := l.hasEnded(&tt.rec); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
