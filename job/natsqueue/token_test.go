package natsqueue_test

import (
	"testing"
	"time"

	"slipway/job"
	"slipway/test/eventually"
)

// An acknowledgment may be late by an outage, and takes away a token then that is
// still there when the next attempt comes due: that one gets its own.
func TestDueBesideTheLastToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := makeJob()
	id := b.submit(j)
	w1 := b.join(t, "w1")
	l := b.mustNext(w1)
	w1.Kill() // it moves nothing any more, but its lease can still speak
	if err := l.Requeue(t.Context(), job.ClassInfra, b.cfg.Timing.AckWait, job.Failure{Outcome: job.Errored, Reason: job.ReasonImagePull}); err != nil {
		t.Fatalf("Requeue: %v", err)
	}
	spec, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	b.publish(b.token(id), spec) // stands for the one that is not acknowledged yet
	s := b.stream("JOBS")
	late, err := s.GetLastMsgForSubject(t.Context(), b.token(id))
	if err != nil {
		t.Fatal(err)
	}
	scheduled := func() int { return len(b.stored("SCHED", b.cfg.Prefix+".D.>")) }
	if scheduled() == 0 {
		t.Fatal("nothing is scheduled")
	}
	w2 := b.join(t, "w2")
	// A move that the server is too busy to answer is tried again after the mover's own AckWait, 30 s.
	eventually.True(t, b.bound(60*time.Second), "the next attempt is moved", func() bool { return scheduled() == 0 })
	if err := s.DeleteMsg(t.Context(), late.Sequence); err != nil {
		t.Fatal(err)
	}
	again := b.mustNext(w2)
	if d := again.Delivery(); d.ID != id || d.Attempt != 2 {
		t.Errorf("delivery: got %+v, want attempt 2 of %s", d, id)
	}
	b.commit(again)
}
