package natsqueue_test

import (
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
