package natsqueue_test

import (
	"testing"

	"slipway/job"
)

// A token that comes again after its job is decided is settled once more. That must not bring back a letter that a person
// dropped meanwhile.
func TestDroppedLetterStaysAway(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"settled whole": false, "settled up to the letter": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			j := makeJob()
			id := b.submit(j)
			w := b.join(t, "w1")
			if _, err := b.mustNext(w).Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
				t.Fatalf("Commit: %v", err)
			}
			results := b.stream("RESULTS")
			if cut {
				if err := results.DeleteMsg(t.Context(), results.CachedInfo().State.LastSeq); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.conn.Client().DropDead(t.Context(), id); err != nil {
				t.Fatalf("DropDead: %v", err)
			}
			spec, err := job.Encode(j)
			if err != nil {
				t.Fatal(err)
			}
			b.publish(b.token(id), spec)
			b.settles(w, "no token is left", func() bool { return len(b.stored("JOBS", b.token(id))) == 0 })
			if letters := b.stored("DEAD", b.cfg.Prefix+".X.>"); len(letters) != 0 {
				t.Errorf("dead letters: got %v, want the dropped one to stay away", letters)
			}
			if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 1 {
				t.Errorf("results: got %v, want one", got)
			}
		})
	}
}

// A result proves that the letter was kept. So a process without the spec, which it can't keep, publishes no result: not
// even a janitor that comes between a worker's decision and its letter.
func TestNoResultBeforeTheLetter(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	j := makeJob()
	id := b.submit(j)
	w := b.join(t, "w1")
	l := b.mustNext(w)
	before, err := b.conn.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	decided, err := b.conn.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"DEAD", "RESULTS"} { // as if the worker had come no further
		s := b.stream(name)
		if err := s.DeleteMsg(t.Context(), s.CachedInfo().State.LastSeq); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.conn.GiveUp(t.Context(), id, before); err != nil {
		t.Errorf("GiveUp: %v", err)
	}
	if err := b.conn.Settle(t.Context(), id, decided); err != nil {
		t.Errorf("Settle without a token: %v", err)
	}
	if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 0 {
		t.Errorf("results before the letter: got %v, want none", got)
	}
	spec, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	b.publish(b.token(id), spec) // the worker goes on
	b.settles(w, "the result is there", func() bool { return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 })
	if letters := b.stored("DEAD", b.cfg.Prefix+".X.>"); len(letters) != 1 {
		t.Errorf("dead letters: got %v, want the job's", letters)
	}
}
