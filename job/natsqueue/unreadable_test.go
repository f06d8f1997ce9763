package natsqueue_test

import (
	"errors"
	"slices"
	"testing"

	"slipway/job"
)

// TestListPastUnreadable: what a foreign program left under one job's name hides no other job.
func TestListPastUnreadable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, records := b.join(t, "w1"), "$KV."+b.cfg.Prefix+"-jobs."
	var good, bad []job.ID
	for _, junk := range []string{`{"labels":{"a":1}}`, `{}`, "\x00"} {
		good = append(good, b.submit(makeJob()))
		b.commit(b.mustNext(w))
		id := job.NewID()
		bad = append(bad, id)
		b.publish(records+string(id), []byte(junk))
	}
	good = append(good, b.submit(makeJob()))
	var listed, unreadable []job.ID
	for st, err := range b.conn.Client().List(t.Context(), job.ListQuery{}) {
		switch {
		case errors.Is(err, job.ErrUnreadable):
			unreadable = append(unreadable, st.ID)
		case err != nil:
			t.Fatal(err)
		default:
			listed = append(listed, st.ID)
		}
	}
	slices.Reverse(listed) // newest first
	slices.Reverse(unreadable)
	if !slices.Equal(listed, good) || !slices.Equal(unreadable, bad) {
		t.Errorf("got %v and unreadable %v, want %v and %v", listed, unreadable, good, bad)
	}
}

// TestDeadLettersPastUnreadable: the same of dead letters.
func TestDeadLettersPastUnreadable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	id := b.submit(makeJob())
	if _, err := b.mustNext(w).Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
		t.Fatal(err)
	}
	b.publish(b.cfg.Prefix+".X.default."+string(job.NewID())+".1", []byte("no letter"))
	b.publish(b.cfg.Prefix+".X.default."+string(job.NewID())+".one", []byte("no generation"))
	var letters, unreadable int
	for d, err := range b.conn.Client().DeadLetters(t.Context()) {
		switch {
		case errors.Is(err, job.ErrUnreadable):
			unreadable++
		case err != nil:
			t.Fatal(err)
		case d.ID == id:
			letters++
		}
	}
	if letters != 1 || unreadable != 2 {
		t.Errorf("got the letter %d times, and %d unreadable, want 1 and 2", letters, unreadable)
	}
}
