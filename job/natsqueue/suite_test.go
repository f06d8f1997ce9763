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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"slipway/internal/hint"
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

// fast are the clocks of most tests. setup stretches them on a slow machine; a test reads its own from bundle.cfg.
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
	// slack is by how much longer than on a quiet machine things take.
	slack float64

	dialed sync.Once
	nc     *nats.Conn
	js     jetstream.JetStream

	mu      sync.Mutex
	workers map[string]*natsqueue.Consumer
}

// settingUp bounds how many tests make their streams at a time. Each synced write waits for those of all others: sixteen at
// once beside a busy CPU keep each other from being ready within standstill.
var settingUp = make(chan struct{}, 2)

// setup makes a fresh queue on the shared server.
func setup(t testing.TB, edits ...func(*natsqueue.Config)) *bundle {
	t.Helper()
	cfg := natsqueue.Config{
		URL: sharedServer(t).ClientURL(), Prefix: fmt.Sprintf("t%d", shared.n.Add(1)), Timing: fast,
		MaxJobs: 10_000, MaxJobBytes: 16 << 20, EventsBytes: 16 << 20, CrashBudget: 1,
		MaxScheduledBytes: 16 << 20, ResultsBytes: 64 << 20, DeadBytes: 16 << 20, RecordsBytes: 64 << 20,
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	settingUp <- struct{}{}
	defer func() { <-settingUp }()
	b := &bundle{t: t, cfg: cfg, slack: slack(t), workers: map[string]*natsqueue.Consumer{}}
	if c := &b.cfg.Timing; *c != job.DefaultTiming() {
		*c = job.Timing{DeadMan: b.bound(c.DeadMan), Lease: b.bound(c.Lease), AckWait: b.bound(c.AckWait), Heartbeat: b.bound(c.Heartbeat)}
	}
	b.conn = b.connect()
	ctx, cancel := context.WithTimeout(t.Context(), standstill)
	defer cancel()
	if err := b.conn.Setup(ctx); err != nil {
		t.Fatalf("Setup: %v", err)
	}
	return b
}

// standstill bounds what a test needs before it begins. A disk that others keep busy can hold every write up for longer
// than the 15 s of a call without a deadline.
const standstill = 2 * time.Minute

// bound stretches d, which is generous on a quiet machine, to what this one can do.
func (b *bundle) bound(d time.Duration) time.Duration { return time.Duration(b.slack * float64(d)) }

const (
	// quietTrip is a write to the shared server, synced to the disk, while nothing but these tests runs.
	quietTrip = 40 * time.Millisecond
	// maxSlack keeps a moment of standstill from making a test take for ever.
	maxSlack = 8
)

// slack measures a few writes to the shared server under the load of this moment. The slowest counts: the slowest heartbeat
// loses a lease.
func slack(t testing.TB) float64 {
	t.Helper()
	nc, js := dial(t, sharedServer(t).ClientURL())
	defer nc.Close()
	_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "slack", Subjects: []string{"slack"}, MaxMsgs: 1})
	var slowest time.Duration
	for range 5 {
		began := time.Now()
		if err == nil {
			_, err = js.Publish(t.Context(), "slack", nil)
		}
		slowest = max(slowest, time.Since(began))
	}
	if err != nil {
		t.Fatalf("measure the machine: %v", err)
	}
	return min(max(1, float64(slowest)/float64(quietTrip)), maxSlack)
}

// dial speaks to a server past the package, as a foreign program would.
func dial(t testing.TB, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.Timeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
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
	return b.joinAs(t, natsqueue.ConsumerConfig{Worker: name})
}

func (b *bundle) joinAs(t testing.TB, cfg natsqueue.ConsumerConfig) *natsqueue.Consumer {
	t.Helper()
	name := cfg.Worker
	conn := b.connect()
	ctx, cancel := context.WithTimeout(t.Context(), standstill)
	defer cancel()
	c, err := conn.Consumer(ctx, cfg)
	if err != nil {
		t.Fatalf("Consumer %s: %v", name, err)
	}
	b.mu.Lock()
	b.workers[name] = c
	b.mu.Unlock()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), b.bound(10*time.Second))
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close of worker %s: %v", name, err)
		}
	})
	return c
}

func (b *bundle) harness() jobtest.Harness {
	return jobtest.Harness{
		Client: b.conn.Client(), Timing: b.cfg.Timing, CrashBudget: b.cfg.CrashBudget, Slack: b.slack,
		Join: func(t testing.TB, worker string) job.Consumer { return b.join(t, worker) },
		Kill: func(worker string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.workers[worker].Kill()
		},
		Evict: func(id job.ID) {
			if err := b.stream("EVENTS").Purge(b.t.Context(), jetstream.WithPurgeSubject(b.cfg.Prefix+".E.*."+string(id)+".*")); err != nil {
				b.t.Fatal(err)
			}
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

// contains looks for parts in the text and the hint of err.
func contains(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, p := range parts {
		if text := hint.Text(err); !strings.Contains(text, p) {
			t.Errorf("error %q: want %q in it", text, p)
		}
	}
}
