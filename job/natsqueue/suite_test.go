package natsqueue_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slipway/job"
	"slipway/job/jobtest"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for clocks, not for processors.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	stopShared()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// fast are the clocks of most tests.
var fast = job.Timing{DeadMan: 600 * time.Millisecond, Lease: 1400 * time.Millisecond, AckWait: 2 * time.Second, Heartbeat: 400 * time.Millisecond}

// patient are those of tests in which a lease must hold while something takes its time.
var patient = job.Timing{DeadMan: 3 * time.Second, Lease: 6 * time.Second, AckWait: 8 * time.Second, Heartbeat: time.Second}

// shared is the server that most tests use, each with a prefix of its own.
var shared struct {
	sync.Once
	dir string
	srv *natsserver.Server
	err error
	n   atomic.Int64
}

func sharedServer(t testing.TB) *natsserver.Server {
	t.Helper()
	shared.Do(func() {
		//nolint:usetesting // it outlives the test that happens to start it
		if shared.dir, shared.err = os.MkdirTemp("", "natsqueue-test-"); shared.err == nil {
			shared.srv, shared.err = natsserver.Start(natsserver.Options{Dir: shared.dir})
		}
	})
	if shared.err != nil {
		t.Fatalf("start the shared server: %v", shared.err)
	}
	return shared.srv
}

func stopShared() {
	if shared.srv != nil {
		shared.srv.Close()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}

// bundle is one test's queue.
type bundle struct {
	t    testing.TB
	cfg  natsqueue.Config
	conn *natsqueue.Conn

	mu      sync.Mutex
	workers map[string]*natsqueue.Consumer
}

// setup makes a fresh queue on the shared server.
func setup(t testing.TB, edits ...func(*natsqueue.Config)) *bundle {
	t.Helper()
	cfg := natsqueue.Config{
		URL: sharedServer(t).ClientURL(), Prefix: fmt.Sprintf("t%d", shared.n.Add(1)), Timing: fast,
		MaxJobs: 10_000, MaxJobBytes: 16 << 20, EventsBytes: 16 << 20, CrashBudget: 1,
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	b := &bundle{t: t, cfg: cfg, workers: map[string]*natsqueue.Consumer{}}
	b.conn = b.connect()
	if err := b.conn.Setup(t.Context()); err != nil {
		t.Fatalf("Setup: %v", err)
	}
	return b
}

func (b *bundle) connect() *natsqueue.Conn {
	b.t.Helper()
	conn, err := natsqueue.Connect(b.t.Context(), b.cfg)
	if err != nil {
		b.t.Fatalf("Connect: %v", err)
	}
	b.t.Cleanup(conn.Close)
	return conn
}

// join makes a worker with a connection of its own.
func (b *bundle) join(t testing.TB, name string) *natsqueue.Consumer {
	t.Helper()
	conn := b.connect()
	c, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: name})
	if err != nil {
		t.Fatalf("Consumer %s: %v", name, err)
	}
	b.mu.Lock()
	b.workers[name] = c
	b.mu.Unlock()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close of worker %s: %v", name, err)
		}
	})
	return c
}

func (b *bundle) harness() jobtest.Harness {
	return jobtest.Harness{
		Client: b.conn.Client(), Timing: fast, CrashBudget: b.cfg.CrashBudget,
		Join: func(t testing.TB, worker string) job.Consumer { return b.join(t, worker) },
		Kill: func(worker string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.workers[worker].Kill()
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	jobtest.Run(t, func(t *testing.T) jobtest.Harness { return setup(t).harness() })
}

// makeJob makes a valid job.
func makeJob() *job.Job {
	return &job.Job{ID: job.NewID(), Name: "test", Image: "busybox", Steps: []job.Step{{Run: "true"}}}
}

func contains(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q: want %q in it", err, p)
		}
	}
}
