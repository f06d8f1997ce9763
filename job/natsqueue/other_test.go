package natsqueue_test

import (
	"errors"
	"sync"
	"testing"

	"slipway/job"
	"slipway/job/natsqueue"
)

// TestForeignTokenUnderAnId: another program can publish any message under the id of a job. It is neither run in the job's
// place, nor kept as its dead letter, and the operator hears of it.
func TestForeignTokenUnderAnId(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var said []error
	b := setup(t, func(c *natsqueue.Config) {
		c.OnError = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, err)
		}
	})
	dropped := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, err := range said {
			if errors.Is(err, job.ErrOtherJob) {
				n++
			}
		}
		return n
	}
	w := b.join(t, "w1")
	id := b.submit(makeJob())
	l := b.mustNext(w)
	lane := b.cfg.Prefix + ".J.default.low." + string(id)
	b.publish(lane, []byte(`{"image":"other","steps":[{"run":"echo other"}]}`))
	b.settles(w, "the message beside a running job is dropped", func() bool { return dropped() == 1 && len(b.stored("JOBS", lane)) == 0 })
	if r, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil || r.Attempt != 1 {
		t.Fatalf("Commit: got %+v, %v, want the result of attempt 1", r, err)
	}
	b.publish(lane, []byte(`{"image":"other","steps":[{"run":"echo other"}]}`))
	b.settles(w, "the message behind a decided job is dropped", func() bool { return dropped() == 2 && len(b.stored("JOBS", lane)) == 0 })
	for d, err := range b.conn.Client().DeadLetters(t.Context()) {
		if err != nil || job.NewFingerprint(d.Spec).Compare(id, job.NewFingerprint(l.Delivery().Spec)) != nil {
			t.Errorf("dead letter: got %s, %v, want the job's own", d.Spec, err)
		}
	}
}
