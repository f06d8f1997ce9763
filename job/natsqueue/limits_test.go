package natsqueue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// A server whose store has no room for the streams' limits is no server that does not answer.
func TestSetupWithoutRoom(t *testing.T) {
	t.Parallel()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), MaxStore: 16 << 20, NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	conn, err := natsqueue.Connect(t.Context(), natsqueue.Config{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	began := time.Now()
	wantFull(t, conn.Setup(t.Context()), "-JOBS", "may have 256MiB", "all streams of the queue together", "max_file_store")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s, want the answer at once", took)
	}
}

// A queue of an earlier release has no limits beyond two streams'. Setup leaves it so, Limits says it, and SetLimits sets them
// without dropping a job.
func TestLimitsOfAnOlderQueue(t *testing.T) {
	t.Parallel()
	b := setupSmall(t)
	_, js := b.raw()
	for _, name := range []string{b.cfg.Prefix + "-SCHED", b.cfg.Prefix + "-RESULTS", b.cfg.Prefix + "-DEAD", "KV_" + b.cfg.Prefix + "-jobs", "KV_" + b.cfg.Prefix + "-workers"} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		cfg.MaxBytes, cfg.Metadata = -1, nil
		if strings.HasSuffix(name, "-DEAD") {
			cfg.Discard = jetstream.DiscardOld
		}
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		b.submit(fat(100<<10, true)) // above the limit that it does not have
	}
	differ, err := b.conn.Limits(t.Context())
	if err != nil || len(differ) != 5 {
		t.Fatalf("Limits: got %v, %v; want five", differ, err)
	}
	if err := b.conn.SetLimits(t.Context()); err != nil {
		t.Fatalf("SetLimits: %v", err)
	}
	if differ, err := b.conn.Limits(t.Context()); err != nil || len(differ) != 0 {
		t.Errorf("Limits afterwards: got %v, %v; want none", differ, err)
	}
	if got := b.stored("SCHED", b.cfg.Prefix+".D.wait.>"); len(got) != 60 {
		t.Errorf("jobs for later: got %d, want all 60", len(got))
	}
	wantFull(t, b.conn.Client().Submit(t.Context(), fat(100<<10, true)), "-SCHED", "of 4MiB")
	if cfg := b.stream("DEAD").CachedInfo().Config; cfg.Discard != jetstream.DiscardNew {
		t.Error("dead letters would be dropped at the limit")
	}
}
