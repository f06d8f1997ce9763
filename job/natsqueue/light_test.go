package natsqueue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"slipway/job"
	"slipway/job/natsqueue"
)

// large is a result that a list must not read. It is that of a dead job, whose letter must be kept first.
func large() *job.Result {
	return &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget, Steps: []job.StepResult{
		{Name: "one", Status: job.StepErrored, Output: job.Output{Head: strings.Repeat("x", 10_000), Bytes: 10_000}},
	}}
}

// decideLarge runs a job to a large result.
func (b *bundle) decideLarge(w *natsqueue.Consumer) *job.Job {
	b.t.Helper()
	j := makeJob()
	b.submit(j)
	if _, err := b.mustNext(w).Commit(b.t.Context(), large()); err != nil {
		b.t.Fatal(err)
	}
	return j
}

func (b *bundle) resultSize(id job.ID) int {
	b.t.Helper()
	v, err := b.conn.Load(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return v.ResultSize()
}

// TestLargeResultLeavesTheRecord: a list reads all records, so a large result stays in RESULTS alone; readers find it there.
func TestLargeResultLeavesTheRecord(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	j := b.decideLarge(w)
	if size := b.resultSize(j.ID); size != 0 {
		t.Errorf("result in the record: got %d bytes, want none", size)
	}
	r, err := b.conn.Client().Result(t.Context(), j.ID)
	if err != nil || r.Outcome != job.Errored || len(r.Steps) != 1 || len(r.Steps[0].Output.Head) != 10_000 {
		t.Errorf("result: got %+v, %v, want all of it", r, err)
	}
	if st, err := b.conn.Client().Status(t.Context(), j.ID); err != nil || st.State != job.StateErrored || st.Reason != job.ReasonInfraBudget || st.FinishedAt.IsZero() {
		t.Errorf("status: got %+v, %v, want how the job ended", st, err)
	}

	// A small one stays, which saves a write.
	id := b.submit(makeJob())
	b.commit(b.mustNext(w))
	if size := b.resultSize(id); size == 0 {
		t.Error("a small result in the record: got none, want it")
	}
}

// TestExpiredLargeResult: a record may outlive its result. How the job ended is known even then, and a token that comes back
// brings back neither the result nor a letter that a person dropped.
func TestExpiredLargeResult(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	j := b.decideLarge(w)
	if err := b.conn.Client().DropDead(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.ForgetResult(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	r, err := b.conn.Client().Result(t.Context(), j.ID)
	if err != nil || r.JobID != j.ID || r.Outcome != job.Errored || r.Reason != job.ReasonInfraBudget || r.Attempt != 1 || !strings.Contains(r.Message, "expired") {
		t.Errorf("result: got %+v, %v, want how the job ended", r, err)
	}
	b.publish(b.token(j.ID), spec(t, j))
	b.settles(w, "no token is left", func() bool { return len(b.stored("JOBS", b.token(j.ID))) == 0 })
	if results, letters := b.stored("RESULTS", b.cfg.Prefix+".R.>"), b.stored("DEAD", b.cfg.Prefix+".X.>"); len(results)+len(letters) != 0 {
		t.Errorf("got results %v and letters %v, want neither again", results, letters)
	}
}

// TestLargeResultIsCutOff: a worker that dies between the decision and the publishing leaves the result in the record. Readers
// have it from there, and the worker that gets the token publishes it, and takes it out.
func TestLargeResultIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	j := b.decideLarge(w)
	results := b.stream("RESULTS")
	published, err := results.GetLastMsgForSubject(t.Context(), b.cfg.Prefix+".R.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"RESULTS", "DEAD"} { // as if it had come no further
		if err := b.stream(s).DeleteMsg(t.Context(), b.stream(s).CachedInfo().State.LastSeq); err != nil {
			t.Fatal(err)
		}
	}
	b.restore(j.ID, published.Data)
	if r, err := b.conn.Client().Result(t.Context(), j.ID); err != nil || len(r.Steps) != 1 {
		t.Errorf("result: got %+v, %v, want that of the record", r, err)
	}
	b.publish(b.token(j.ID), spec(t, j))
	b.settles(w, "the result is published, and in the record no more", func() bool {
		return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 && len(b.stored("DEAD", b.cfg.Prefix+".X.>")) == 1 && b.resultSize(j.ID) == 0
	})
}

// restore puts a result back into its record, where also earlier versions of slipway kept it.
func (b *bundle) restore(id job.ID, result []byte) {
	b.t.Helper()
	_, js := b.raw()
	records, err := js.KeyValue(b.t.Context(), b.cfg.Prefix+"-jobs")
	if err != nil {
		b.t.Fatal(err)
	}
	entry, err := records.Get(b.t.Context(), string(id))
	if err != nil {
		b.t.Fatal(err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(entry.Value(), &fields); err != nil {
		b.t.Fatal(err)
	}
	fields["result"] = result
	data, err := json.Marshal(fields)
	if err != nil {
		b.t.Fatal(err)
	}
	b.publish("$KV."+b.cfg.Prefix+"-jobs."+string(id), data)
}
