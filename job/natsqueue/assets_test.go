package natsqueue_test

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

func TestSetupTwiceAndUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.conn.Setup(t.Context()); err != nil {
		t.Fatalf("second Setup: %v", err)
	}
	b.cfg.MaxJobs = 7
	other := b.connect()
	if err := errors.Join(other.Setup(t.Context()), other.SetLimits(t.Context())); err != nil {
		t.Fatalf("Setup with other limits: %v", err)
	}
	_, js := b.raw()
	s := b.stream("JOBS")
	if cfg := s.CachedInfo().Config; cfg.MaxMsgs != 7+1 || !cfg.DenyPurge || cfg.Discard != jetstream.DiscardNew || cfg.Retention != jetstream.WorkQueuePolicy {
		t.Errorf("JOBS: got %+v", cfg)
	}
	if err := s.Purge(t.Context()); err == nil {
		t.Error("a purge of JOBS was allowed; one by subject strands other jobs")
	}
	if kv, err := js.KeyValue(t.Context(), b.cfg.Prefix+"-jobs"); err != nil {
		t.Errorf("the record's bucket is unreadable to other tools: %v", err)
	} else if _, err := kv.Status(t.Context()); err != nil {
		t.Errorf("status of the record's bucket: %v", err)
	}
	if err := b.conn.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-DEAD"); err != nil {
		t.Fatal(err)
	}
	missing, ok := errors.AsType[*natsqueue.MissingError](b.conn.Check(t.Context()))
	if !ok || missing.Kind != "stream" || missing.Name != b.cfg.Prefix+"-DEAD" {
		t.Errorf("Check without the stream: got %+v, want a MissingError that names it", missing)
	}
}

// between is a way to a server on which something else happens just before the first request that holds a text.
type between struct {
	*natsserver.Server
	text   string
	happen func()
	once   sync.Once
}

func (w *between) InProcessConn() (net.Conn, error) {
	c, err := w.Server.InProcessConn()
	return &betweenConn{Conn: c, w: w}, err
}

type betweenConn struct {
	net.Conn
	w *between
}

func (c *betweenConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.w.text)) {
		c.w.once.Do(c.w.happen)
	}
	return c.Conn.Write(p)
}

// Another one that starts with other limits may make a stream between the look for it and the making. The server then
// refuses the second one, whose Setup must neither fail nor touch the other's limits.
func TestSetupOvertaken(t *testing.T) {
	t.Parallel()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	other := setup(t, func(c *natsqueue.Config) { c.InProcess, c.Prefix = srv, "other" })
	other.cfg.Prefix, other.cfg.MaxJobs = "raced", 9
	overtaken := false
	b := setup(t, func(c *natsqueue.Config) {
		c.Prefix, c.MaxJobs = "raced", 7
		c.InProcess = &between{Server: srv, text: "$JS.API.STREAM.CREATE.raced-JOBS ", happen: func() {
			overtaken = true
			if err := other.connect().Setup(t.Context()); err != nil {
				t.Errorf("Setup of the faster one: %v", err)
			}
		}}
	})
	info, err := b.conn.JobsInfo(t.Context())
	if err != nil || !overtaken || info.Config.MaxMsgs != 9+1 {
		t.Errorf("JOBS: got %+v, %v, overtaken %t, want the limit of the faster one, 9 and the first message", info, err, overtaken)
	}
}

// TestLimitsOfMissingStreams: a stream that is missing beside others has no limit that could differ, and is not waited for.
// Without any stream there is nothing to compare.
func TestLimitsOfMissingStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *natsqueue.Config) { c.MaxJobs = 9 })
	_, js := b.raw()
	for _, s := range []string{"EVENTS", "RESULTS"} {
		if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-"+s); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg.MaxJobs = 7
	conn := b.connect()
	got, err := conn.Limits(t.Context())
	if err != nil || len(got) != 1 || got[0].Setting != "MaxJobs" {
		t.Errorf("Limits: got %v, %v, want MaxJobs alone", got, err)
	}
	if err := conn.SetLimits(t.Context()); err != nil {
		t.Errorf("SetLimits: %v", err)
	}
	if got, err := conn.Limits(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Limits after SetLimits: got %v, %v, want none", got, err)
	}
	b.cfg.Prefix += "-other"
	other := b.connect()
	if _, err := other.Limits(t.Context()); !errors.Is(err, job.ErrNotSetUp) {
		t.Errorf("Limits without any stream: got %v, want ErrNotSetUp", err)
	}
	if err := other.SetLimits(t.Context()); !errors.Is(err, job.ErrNotSetUp) {
		t.Errorf("SetLimits without any stream: got %v, want ErrNotSetUp", err)
	}
}

// TestSetupKeepsLimits: an operator's limits outlive the start of a worker that was not told of them. A shorter age once
// deleted a week of events.
func TestSetupKeepsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, js := b.raw()
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"EVENTS":  func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = 7*24*time.Hour, -1 },
		"RESULTS": func(c *jetstream.StreamConfig) { c.MaxAge = 168 * time.Hour },
		"JOBS":    func(c *jetstream.StreamConfig) { c.MaxMsgs = 2_000_001 }, // the first message counts
		"SCHED":   func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 },  // no setting of ours
	} {
		cfg := b.stream(name).CachedInfo().Config
		change(&cfg)
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	worker := b.connect()
	if err := worker.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := worker.Limits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []natsqueue.Limit{
		{Stream: b.cfg.Prefix + "-JOBS", Setting: "MaxJobs", Have: "2000000", Want: "10000", Loses: true},
		{Stream: b.cfg.Prefix + "-RESULTS", Setting: "ResultsAge", Have: "168h0m0s", Want: "720h0m0s"},
		{Stream: b.cfg.Prefix + "-EVENTS", Setting: "EventsBytes", Have: "unlimited", Want: "16MiB", Loses: true},
		{Stream: b.cfg.Prefix + "-EVENTS", Setting: "EventsAge", Have: "168h0m0s", Want: "24h0m0s", Loses: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("limits that differ after Setup:\ngot  %v\nwant %v", got, want)
	}
	if err := worker.SetLimits(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := worker.Limits(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("after SetLimits: got %v, %v, want none", got, err)
	}
	if got := b.stream("SCHED").CachedInfo().Config.MaxBytes; got != 1<<30 {
		t.Errorf("SCHED: got %d bytes, want the operator's", got)
	}
}

// A second worker with other settings must not pull the ground from under the first.
func TestSetupLeavesLivingWorkersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	b.cfg.Replicas = 3 // which this single server could not give
	if err := b.connect().Setup(t.Context()); err != nil {
		t.Errorf("Setup with other replicas: %v; want the streams left as they are", err)
	}
	// What an operator did to a lane by hand is put right all the same: no lease rests on it.
	_, js := b.raw()
	lane, err := js.Consumer(t.Context(), b.cfg.Prefix+"-JOBS", "default_normal")
	if err != nil {
		t.Fatal(err)
	}
	limited := lane.CachedInfo().Config
	limited.MaxDeliver = 5
	if _, err := js.UpdateConsumer(t.Context(), b.cfg.Prefix+"-JOBS", limited); err != nil {
		t.Fatal(err)
	}
	if err := b.connect().Setup(t.Context()); err != nil {
		t.Errorf("Setup of a lane that gives jobs up: %v", err)
	}
	if info, err := lane.Info(t.Context()); err != nil || info.Config.MaxDeliver != -1 {
		t.Errorf("lane: got %+v, %v, want it to give nothing up", info, err)
	}
	before := b.cfg.Timing.AckWait.String()
	b.cfg.Timing.AckWait += time.Second
	other := b.connect()
	contains(t, other.Setup(t.Context()), "w1", "Timing.AckWait", before)
	contains(t, other.Check(t.Context()), "w1", "Timing.AckWait", before)
	_, err = other.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w2"})
	contains(t, err, "w1", "Timing.AckWait")
	if err := w.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := other.Setup(t.Context()); err != nil {
		t.Errorf("Setup once no worker lives: %v", err)
	}
	lane, err = js.Consumer(t.Context(), b.cfg.Prefix+"-JOBS", "default_normal")
	if err != nil || lane.CachedInfo().Config.AckWait != b.cfg.Timing.AckWait {
		t.Errorf("lane: got %+v, %v; want AckWait %s", lane, err, b.cfg.Timing.AckWait)
	}
}

// Lanes and streams are what the protocol relies on: no message is given up or dropped by the server, none is held back by
// those that wait for a retry, and many workers may start at once.
func TestWhatSetupMakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Prefix += "-many"
	var wg sync.WaitGroup
	for range 4 {
		conn := b.connect()
		wg.Go(func() {
			if err := conn.Setup(t.Context()); err != nil {
				t.Errorf("Setup beside others: %v", err)
			}
		})
	}
	wg.Wait()
	_, js := b.raw()
	cons, err := js.Consumer(t.Context(), b.cfg.Prefix+"-JOBS", "default_normal")
	if err != nil {
		t.Fatal(err)
	}
	c := cons.CachedInfo().Config
	if c.MaxDeliver != -1 || len(c.BackOff) != 0 || c.MaxAckPending != -1 || c.MaxRequestBatch != 1 || c.MaxWaiting < 10_000 || c.AckWait != b.cfg.Timing.AckWait {
		t.Errorf("lane: got %+v", c)
	}
	for name, age := range map[string]time.Duration{"JOBS": 0, "SCHED": 0, "DEAD": 0, "RESULTS": 30 * 24 * time.Hour, "EVENTS": 24 * time.Hour} {
		if got := b.stream(name).CachedInfo().Config; got.MaxAge != age || got.MaxMsgsPerSubject > 0 {
			t.Errorf("%s: got messages kept for %s, %d a subject; want %s (0: for ever), and no bound", name, got.MaxAge, got.MaxMsgsPerSubject, age)
		}
	}
	if got := b.stream("JOBS").CachedInfo().Config.Discard; got != jetstream.DiscardNew {
		t.Errorf("a full JOBS: got %s, want it to refuse the new", got)
	}
}
