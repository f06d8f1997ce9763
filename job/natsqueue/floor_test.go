package natsqueue_test

import (
	"errors"
	"testing"

	"slipway/job"
	"slipway/job/natsqueue"
)

// TestFirstMessageStays: JOBS begins with a message that outlives all jobs, is none itself, and takes no job's room. Without
// it, a pull from a long queue takes the server as long as the queue is.
func TestFirstMessageStays(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *natsqueue.Config) { c.MaxJobs, c.Timing = 1, patient })
	w := b.join(t, "w1") // each join and each Setup leaves the message as it is
	if err := b.conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := b.submit(makeJob())
	if err := b.conn.Client().Submit(t.Context(), makeJob()); !errors.Is(err, job.ErrFull) {
		t.Errorf("a second job in a queue for one: got %v, want ErrFull", err)
	}
	if got, _ := list(t, b.conn.Client(), job.ListQuery{}); len(got) != 1 || got[0] != id {
		t.Errorf("list: got %v, want %s alone", got, id)
	}
	b.commit(b.mustNext(w))
	state := b.stream("JOBS").CachedInfo().State
	if state.Msgs != 1 || state.FirstSeq != 1 {
		t.Errorf("JOBS without jobs: got %d messages from sequence %d, want the first one", state.Msgs, state.FirstSeq)
	}
	depth, err := b.conn.Depth(t.Context())
	for _, d := range depth {
		if err != nil || d.Waiting != 0 || d.InFlight != 0 {
			t.Errorf("depth: got %+v, %v, want nothing in any lane", d, err)
		}
	}
}

// TestSetupWithoutTheFirstMessage: an account that may not write it sets the queue up all the same.
func TestSetupWithoutTheFirstMessage(t *testing.T) {
	t.Parallel()
	connect := roleServer(t)
	if err := connect("admin:a", "").DeleteToken(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	conn := connect("nofloor:f", "")
	if err := conn.Setup(t.Context()); err != nil {
		t.Errorf("Setup: %v", err)
	}
	if info, err := conn.JobsInfo(t.Context()); err != nil || info.State.Msgs != 0 {
		t.Errorf("JOBS: got %+v, %v, want no message", info, err)
	}
}
