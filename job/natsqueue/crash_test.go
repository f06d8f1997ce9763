package natsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
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
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| crash") {
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
	j.NotBefore = time.Now().Add(500 * time.Millisecond)
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
	later.NotBefore = time.Now().Add(200 * time.Millisecond)
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

// The acknowledgment comes last: a decision whose result can't be published keeps its token, so that another worker settles.
func TestAckComesLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	w := b.join(t, "w1")
	l := b.mustNext(w)
	_, js := b.raw()
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-RESULTS"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), b.bound(time.Second))
	defer cancel()
	if _, err := l.Commit(ctx, &job.Result{Outcome: job.Succeeded}); err != nil {
		t.Fatalf("Commit: got %v, want the decision to stand", err)
	}
	if left := b.stored("JOBS", b.token(id)); len(left) != 1 {
		t.Errorf("tokens: got %v, want the job's, for it is not settled", left)
	}
	if err := b.conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.settles(w, "the result is there", func() bool { return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 })
}

// A reader of the result finds all events: the last one is published before it.
func TestLastEventComesBeforeTheResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nc, _ := b.raw()
	seen := subscribe(t, nc, b.cfg.Prefix+".>")
	b.submit(makeJob())
	b.commit(b.mustNext(b.join(t, "w1")))
	var order []string
	for len(order) < 2 {
		msg, err := seen.NextMsg(b.bound(10 * time.Second))
		if err != nil {
			t.Fatalf("after %v: %v", order, err)
		}
		if kind := strings.Split(msg.Subject, ".")[1]; kind == "E" || kind == "R" {
			order = append(order, kind)
		}
	}
	if order[0] != "E" {
		t.Errorf("order: got %v, want the event first", order)
	}
}

// A cancel of a waiting job that was cut off after the record leaves the token, by which a worker publishes the result.
func TestCancelIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := makeJob()
	id := b.submit(j)
	if _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil {
		t.Fatal(err)
	}
	results := b.stream("RESULTS")
	if err := results.DeleteMsg(t.Context(), results.CachedInfo().State.LastSeq); err != nil {
		t.Fatal(err)
	}
	b.publish(b.token(id), spec(t, j))
	b.settles(b.join(t, "w1"), "the result is there, and no token", func() bool {
		return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 && len(b.stored("JOBS", b.token(id))) == 0
	})
}

// A cancel whose push to the worker got lost is read at the next heartbeat, and never turns an abort back into a cancel.
func TestLostPushOfACancel(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	id := b.submit(makeJob())
	w := b.join(t, "w1")
	l := b.mustNext(w)
	w.Kill() // it hears no push any more
	for _, mode := range []job.CancelMode{job.Abort, job.Cancel} {
		if _, err := b.conn.Client().Cancel(t.Context(), id, mode); err != nil {
			t.Fatal(err)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
	if got := len(l.Canceled()); got != 1 {
		t.Fatalf("Canceled: got %d modes, want one", got)
	}
	if got := <-l.Canceled(); got != job.Abort {
		t.Errorf("Canceled: got %d, want abort", got)
	}
}

// A requeue of a dead job that was cut off after the record is finished by a second call, or by the janitor.
func TestRequeueDeadIsCutOff(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(*testing.T, *bundle, job.ID){
		"a second call": func(t *testing.T, b *bundle, id job.ID) {
			if err := b.conn.Client().RequeueDead(t.Context(), id); err != nil {
				t.Fatalf("RequeueDead: %v", err)
			}
			if left := b.stored("DEAD", b.cfg.Prefix+".X.>"); len(left) != 0 {
				t.Errorf("dead letters: got %v, want none", left)
			}
		},
		"the janitor": func(t *testing.T, b *bundle, _ job.ID) {
			s := b.conn.NewSweep()
			look(t, s, 1)
			if got := b.stored("JOBS", b.cfg.Prefix+".J.>"); len(got) != 0 {
				t.Errorf("tokens after one look: got %v, want none: a token on its way is in no stream either", got)
			}
			look(t, s, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, unhurried)
			id := b.submit(makeJob())
			w := b.join(t, "w1")
			if _, err := b.mustNext(w).Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
				t.Fatal(err)
			}
			_, js := b.raw()
			letter, err := b.stream("DEAD").GetLastMsgForSubject(t.Context(), b.cfg.Prefix+".X.>")
			if err != nil {
				t.Fatal(err)
			}
			if err := b.conn.Client().RequeueDead(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			jobs := b.stream("JOBS")
			if err := jobs.DeleteMsg(t.Context(), jobs.CachedInfo().State.LastSeq); err != nil { // as if it had come no further
				t.Fatal(err)
			}
			again := nats.NewMsg(letter.Subject)
			again.Data = letter.Data
			again.Header.Set("Slipway-Status", letter.Header.Get("Slipway-Status")) // not the headers of the read
			if _, err := js.PublishMsg(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			finish(t, b, id)
			l := b.mustNext(w)
			if d := l.Delivery(); d.ID != id || d.Generation != 2 || d.Counts != (job.Counts{}) {
				t.Errorf("delivery: got %+v, want generation 2 with fresh budgets", d)
			}
			b.commit(l)
		})
	}
}

// A job whose token got lost while its owner works on it is the owner's to commit.
func TestJanitorLeavesALivingOwnerAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	id := b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	eventually.True(t, b.bound(5*time.Second), "the worker says what it runs", func() bool {
		all, err := b.conn.Workers(t.Context())
		return err == nil && len(all) == 1 && len(all[0].Running) == 1
	})
	jobs := b.stream("JOBS")
	if err := jobs.DeleteMsg(t.Context(), jobs.CachedInfo().State.LastSeq); err != nil {
		t.Fatal(err)
	}
	look(t, b.conn.NewSweep(), 3)
	if got := b.state(id); got != job.StateRunning {
		t.Errorf("state: got %s, want running", got)
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

// lagging is a way to a server whose answers can be held up: requests arrive, and their answers come too late.
type lagging struct {
	*natsserver.Server
	mu   sync.Mutex
	hold chan struct{} // closed when the answers go on; nil while nothing is held up
}

func (l *lagging) InProcessConn() (net.Conn, error) {
	c, err := l.Server.InProcessConn()
	return &laggingConn{Conn: c, l: l}, err
}

// holdUp keeps the answers back for d.
func (l *lagging) holdUp(d time.Duration) {
	hold := make(chan struct{})
	l.mu.Lock()
	l.hold = hold
	l.mu.Unlock()
	time.AfterFunc(d, func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(hold)
	})
}

type laggingConn struct {
	net.Conn
	l *lagging
}

func (c *laggingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.mu.Lock()
	hold := c.l.hold
	c.l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return n, err
}

// A write of the record may take effect although its confirmation never comes. The call then finds its own write, and must
// not take it for another's.
func TestLostConfirmation(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(job.Lease, *natsqueue.Conn) error{
		"commit": func(l job.Lease, _ *natsqueue.Conn) error {
			_, err := l.Commit(context.Background(), &job.Result{Outcome: job.Succeeded})
			return err
		},
		"requeue": func(l job.Lease, _ *natsqueue.Conn) error {
			return l.Requeue(context.Background(), job.ClassInfra, 0, job.Failure{})
		},
		"release": func(l job.Lease, _ *natsqueue.Conn) error { return l.Release(context.Background()) },
		"cancel": func(l job.Lease, c *natsqueue.Conn) error {
			met, err := c.Client().Cancel(context.Background(), l.Delivery().ID, job.Cancel)
			if err == nil && met != job.StateRunning {
				err = errors.New("met " + string(met))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(srv.Close)
			slow := &lagging{Server: srv}
			b := setup(t, unhurried, func(c *natsqueue.Config) { c.InProcess = slow })
			id := b.submit(makeJob())
			l := b.mustNext(b.join(t, "w1"))
			slow.holdUp(5500 * time.Millisecond) // longer than one try
			if err := act(l, b.conn); err != nil {
				t.Errorf("%s: got %v, want its own write to count", name, err)
			}
			st, err := b.conn.Client().Status(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]job.Counts{"requeue": {Infra: 1}}[name]; st.Counts != want {
				t.Errorf("counts: got %+v, want %+v: charged once", st.Counts, want)
			}
		})
	}
}
