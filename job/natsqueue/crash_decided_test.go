package natsqueue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
	"slipway/test/eventually"
)

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
