package natsqueue_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// lose makes a job that waits for a retry, and has no message any more.
func (b *bundle) lose(w *natsqueue.Consumer) job.ID {
	b.t.Helper()
	id := b.submit(makeJob())
	if err := b.mustNext(w).Requeue(b.t.Context(), job.ClassInfra, time.Hour, job.Failure{}); err != nil {
		b.t.Fatal(err)
	}
	if err := b.stream("SCHED").Purge(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bundle) state(id job.ID) job.State {
	b.t.Helper()
	st, err := b.conn.Client().Status(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("Status: %v", err)
	}
	return st.State
}

// A server comes back with an older store, in which a job gets a sequence that the janitor had read before.
func TestJanitorOfAnOlderStore(t *testing.T) {
	t.Parallel()
	r := startRestartable(t)
	b := setupOn(t, r, unhurried)
	swap := func(to, from string) {
		t.Helper()
		r.srv.Close()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		r.start()
		eventually.True(t, b.bound(20*time.Second), "the connection is back", b.conn.Connected)
	}
	older := t.TempDir()
	swap(older, r.dir)
	w := b.join(t, "w1")
	for range 8 {
		b.submit(makeJob())
		b.commit(b.mustNext(w))
	}
	s := b.conn.NewSweep()
	look(t, s, 1)
	swap(r.dir, older)
	id := b.lose(b.join(t, "w2"))
	look(t, s, 2)
	if got := b.state(id); got != job.StateErrored {
		t.Errorf("state of a job that lost its message: got %s, want it given up", got)
	}
}

// The janitor reads everything again after each sign that the store may be another one, and only then.
func TestJanitorStartsOver(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]func(b *bundle, s *natsqueue.Sweep, id job.ID) error{
		"sequences went back":    func(_ *bundle, s *natsqueue.Sweep, _ job.ID) error { s.Ahead(); return nil },
		"a day old":              func(_ *bundle, s *natsqueue.Sweep, _ job.ID) error { s.Age(25 * time.Hour); return nil },
		"the connection is anew": func(b *bundle, _ *natsqueue.Sweep, _ job.ID) error { return b.conn.Reconnect() },
		"the stream is anew": func(b *bundle, _ *natsqueue.Sweep, id job.ID) error {
			_, js := b.raw()
			name, subject := "KV_"+b.cfg.Prefix+"-jobs", "$KV."+b.cfg.Prefix+"-jobs."
			records, err := js.Stream(b.t.Context(), name)
			if err != nil {
				return err
			}
			rec, err := records.GetLastMsgForSubject(b.t.Context(), subject+string(id))
			if err != nil {
				return err
			}
			if err := js.DeleteStream(b.t.Context(), name); err != nil {
				return err
			}
			if err := b.conn.Setup(b.t.Context()); err != nil {
				return err
			}
			b.publish(subject+string(id), rec.Data)
			for range rec.Sequence {
				b.publish(subject+"other", nil)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, unhurried)
			id := b.lose(b.join(t, "w1"))
			s := b.conn.NewSweep()
			look(t, s, 1)
			s.Forget()
			look(t, s, 2)
			if s.Open() != 0 {
				t.Fatal("the records were read twice without a sign")
			}
			if err := sign(b, s, id); err != nil {
				t.Fatal(err)
			}
			eventually.True(t, b.bound(20*time.Second), "the connection is there", b.conn.Connected)
			look(t, s, 2)
			if got := b.state(id); got != job.StateErrored {
				t.Errorf("state of a job that lost its message: got %s, want it given up", got)
			}
		})
	}
}

// A janitor that gives a job up settles nothing but its own decision, and says if it could not.
func TestGiveUpMeets(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	_, js := b.raw()
	records, err := js.KeyValue(t.Context(), b.cfg.Prefix+"-jobs")
	if err != nil {
		t.Fatal(err)
	}
	running := func() (job.Lease, natsqueue.Version) {
		b.submit(makeJob())
		l := b.mustNext(w)
		v, err := b.conn.Load(t.Context(), l.Delivery().ID)
		if err != nil {
			t.Fatal(err)
		}
		return l, v
	}
	results := func() int { return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) }

	// A record that a person removed meanwhile.
	l, v := running()
	if err := records.Delete(t.Context(), string(l.Delivery().ID)); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.GiveUp(t.Context(), l.Delivery().ID, v); err != nil || results() != 0 {
		t.Errorf("a record that is gone: got %v and %d results, want neither", err, results())
	}

	// A job that its worker decided meanwhile, and did not settle yet.
	l, v = running()
	b.commit(l)
	if err := b.conn.ForgetResult(t.Context(), l.Delivery().ID); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.GiveUp(t.Context(), l.Delivery().ID, v); err != nil || results() != 0 {
		t.Errorf("another's decision: got %v and %d results, want it left to that worker", err, results())
	}

	// Its own decision, which can't be settled.
	l, v = running()
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-RESULTS"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), b.bound(2*time.Second))
	defer cancel()
	if err := b.conn.GiveUp(ctx, l.Delivery().ID, v); !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("without the stream of results: got %v, want %v", err, job.ErrUnavailable)
	}
	if got, err := b.conn.Load(t.Context(), l.Delivery().ID); err != nil || got.State() != job.StateErrored {
		t.Errorf("the record: got %s, %v, want it decided", got.State(), err)
	}
}

// A job whose end a user asked for has it, also if the queue lost its message.
func TestGiveUpCanceled(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	id := b.submit(makeJob())
	b.mustNext(b.join(t, "w1"))
	v, err := b.conn.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.GiveUp(t.Context(), id, v); err != nil {
		t.Errorf("GiveUp: %v", err)
	}
	if r, err := b.conn.Client().Result(t.Context(), id); err != nil || r.Outcome != job.Canceled || r.Reason != job.ReasonCanceledByUser {
		t.Errorf("result: got %+v, %v, want it canceled", r, err)
	}
}
