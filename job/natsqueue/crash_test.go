package natsqueue_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// Each test of this file cuts the protocol off after one step, and checks that another process goes on. crashes.md lists
// them.

// Every test that the table names exists.
func TestCrashTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("crashes.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, pattern := range []string{"*_test.go", "../jobtest/suite*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.Contains(line, "| held by |") {
			continue
		}
		rows++
		named := regexp.MustCompile("`(Test[A-Za-z]+)`|suite: `([^`]+)`").FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test in the row %q", line)
		}
		for _, n := range named {
			if want := "func " + n[1] + "("; n[1] != "" && !strings.Contains(sources.String(), want) {
				t.Errorf("test %s of the row %q: not found", n[1], line)
			}
			if want := `"` + n[2] + `":`; n[2] != "" && !strings.Contains(sources.String(), want) {
				t.Errorf("suite test %q of the row %q: not found", n[2], line)
			}
		}
	}
	if rows < 15 {
		t.Errorf("rows: got %d, want the whole protocol", rows)
	}
}

// spec encodes j.
func spec(t testing.TB, j *job.Job) []byte {
	t.Helper()
	data, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rewrite changes the stored record of a job, as a worker would that dies right after it.
func (b *bundle) rewrite(id job.ID, change func(rec map[string]any)) {
	b.t.Helper()
	_, js := b.raw()
	kv, err := js.KeyValue(b.t.Context(), b.cfg.Prefix+"-jobs")
	if err != nil {
		b.t.Fatal(err)
	}
	entry, err := kv.Get(b.t.Context(), string(id))
	if err != nil {
		b.t.Fatal(err)
	}
	rec := map[string]any{}
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		b.t.Fatal(err)
	}
	change(rec)
	data, err := json.Marshal(rec)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := kv.Update(b.t.Context(), string(id), data, entry.Revision()); err != nil {
		b.t.Fatal(err)
	}
}

// A worker that dies between fetch and claim costs the job an AckWait, and nothing else.
func TestDeathBeforeTheClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	_, js := b.raw()
	lane, err := js.Consumer(t.Context(), b.cfg.Prefix+"-JOBS", "default_normal")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if msg, err := lane.Next(jetstream.FetchMaxWait(b.bound(5 * time.Second))); err != nil || !strings.HasSuffix(msg.Subject(), string(id)) {
		t.Fatalf("fetch: got %v, %v; want the job's token", msg, err)
	}
	l := b.mustNext(b.join(t, "w1"))
	if took := time.Since(began); took < b.cfg.Timing.AckWait-time.Second/2 {
		t.Errorf("came again after %s, want AckWait (%s), as the server keeps it", took, b.cfg.Timing.AckWait)
	}
	if d := l.Delivery(); d.ID != id || d.Attempt != 1 || d.Counts != (job.Counts{}) {
		t.Errorf("delivery: got %+v, want the first attempt, at no cost", d)
	}
	b.commit(l)
}

// A worker that wrote "queued" and died before it gave the token back is not charged as a crash, and the delay holds.
func TestDeathBeforeTheTokenIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	w := b.join(t, "w1")
	b.mustNext(w)
	w.Kill()
	due := time.Now().Add(b.cfg.Timing.AckWait + b.bound(time.Second))
	b.rewrite(id, func(rec map[string]any) { rec["state"], rec["not_before"] = job.StateQueued, due.UTC() })
	l := b.mustNext(b.join(t, "w2"))
	if early := time.Until(due); early > 0 {
		t.Errorf("came %s early", early)
	}
	if d := l.Delivery(); d.Attempt != 2 || d.Counts != (job.Counts{}) {
		t.Errorf("delivery: got %+v, want attempt 2 without a charge", d)
	}
	b.commit(l)
}

// A mover that put the token into JOBS and died makes a second token of it.
func TestMoverDiesBeforeItsAck(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	j := makeJob()
	j.NotBefore = time.Now().Add(b.bound(2 * time.Second)) // after the submission, however long that takes
	id := b.submit(j)
	_, js := b.raw()
	mover, err := js.Consumer(t.Context(), b.cfg.Prefix+"-SCHED", "mover")
	if err != nil {
		t.Fatal(err)
	}
	due, err := mover.Next(jetstream.FetchMaxWait(b.bound(20 * time.Second)))
	if err != nil {
		t.Fatalf("what is due: %v", err)
	}
	b.publish(b.token(id), due.Data())
	if err := due.Nak(); err != nil { // instead of the 30 s that the server waits for the mover
		t.Fatal(err)
	}
	w := b.join(t, "w1")
	eventually.True(t, b.bound(20*time.Second), "the second token is moved", func() bool {
		return len(b.stored("SCHED", b.cfg.Prefix+".D.>")) == 0
	})
	b.commit(b.mustNext(w))
	b.settles(w, "no token is left", func() bool { return len(b.stored("JOBS", b.token(id))) == 0 })
	if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 1 {
		t.Errorf("results: got %v, want one", got)
	}
}

// The mover acknowledges a due job only once it is in JOBS: until there is room it stays in SCHED.
func TestDueJobWaitsForRoom(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried, func(c *natsqueue.Config) { c.MaxJobs = 1 })
	first := b.submit(makeJob())
	later := makeJob()
	later.NotBefore = time.Now().Add(b.bound(2 * time.Second)) // after the submission, however long that takes
	b.submit(later)
	w := b.join(t, "w1")
	eventually.True(t, b.bound(20*time.Second), "the mover has the due job", func() bool {
		info, err := b.stream("SCHED").Consumer(t.Context(), "mover")
		return err == nil && info.CachedInfo().NumAckPending == 1
	})
	l := b.mustNext(w)
	if got := l.Delivery().ID; got != first {
		t.Fatalf("delivery: got job %s, want %s", got, first)
	}
	b.commit(l)
	l = b.mustNext(w)
	if got := l.Delivery().ID; got != later.ID {
		t.Errorf("delivery: got job %s, want the one that waited for room, %s", got, later.ID)
	}
	b.commit(l)
}

// A worker whose own lease ran out takes the job again; that is no crash.
func TestOwnLostLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(makeJob())
	w := b.join(t, "w1")
	b.mustNext(w)
	l := b.mustNext(w)
	if d := l.Delivery(); d.Attempt != 2 || d.Counts != (job.Counts{Infra: 1}) {
		t.Errorf("delivery: got %+v, want attempt 2, charged to the infrastructure", d)
	}
	b.commit(l)
}

// A process that lives and does not work on a job keeps it no longer than a lease: its entry may lag behind a claim, but
// not longer.
func TestHungJobOfALivingWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := makeJob()
	b.submit(j)
	w1 := b.join(t, "w1")
	first := b.mustNext(w1).Delivery()
	all, err := b.conn.Workers(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("Workers: got %v, %v", all, err)
	}
	w1.Kill()
	all[0].Running = nil
	entry, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	b.publish("$KV."+b.cfg.Prefix+"-workers.w1", entry) // for ever
	b.publish(b.token(j.ID), spec(t, j))                // a second token comes before AckWait
	l := b.mustNext(b.join(t, "w2"))
	if d := l.Delivery(); d.Attempt != 2 || d.ClaimedAt.Sub(first.ClaimedAt) < b.cfg.Timing.Lease {
		t.Errorf("delivery: got %+v, want attempt 2 after the lease of %s", d, b.cfg.Timing.Lease)
	}
	if d := l.Delivery(); d.Counts != (job.Counts{Infra: 1}) {
		t.Errorf("charged: got %+v, want the infrastructure's budget, for the process lives", d.Counts)
	}
	b.commit(l)
}

// A dead worker's entry goes away by itself.
func TestEntryOfADeadWorkerExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.join(t, "w1").Kill()
	eventually.True(t, b.bound(20*time.Second), "nobody is alive", func() bool {
		all, err := b.conn.Workers(t.Context())
		return err == nil && len(all) == 0
	})
}
