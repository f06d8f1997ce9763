package natsqueue_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// A prefix that nobody set up is told at once, by every call.
func TestNotSetUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Prefix += "-other"
	conn := b.connect()
	c := conn.Client()
	later, id := makeJob(), job.NewID()
	later.NotBefore = time.Now().Add(time.Hour)
	for name, call := range map[string]func() error{
		"Submit":           func() error { return c.Submit(t.Context(), makeJob()) },
		"Submit for later": func() error { return c.Submit(t.Context(), later) },
		"Status":           func() error { _, err := c.Status(t.Context(), id); return err },
		"Result":           func() error { _, err := c.Result(t.Context(), id); return err },
		"Cancel":           func() error { _, err := c.Cancel(t.Context(), id, job.Cancel); return err },
		"RequeueDead":      func() error { return c.RequeueDead(t.Context(), id) },
		"DropDead":         func() error { return c.DropDead(t.Context(), id) },
		"List": func() (err error) {
			for _, err = range c.List(t.Context(), job.ListQuery{}) {
			}
			return err
		},
		"Follow": func() (err error) {
			for _, err = range c.Follow(t.Context(), id, true) {
			}
			return err
		},
		"DeadLetters": func() (err error) {
			for _, err = range c.DeadLetters(t.Context()) {
			}
			return err
		},
		"Depth":    func() error { _, err := conn.Depth(t.Context()); return err },
		"Workers":  func() error { _, err := conn.Workers(t.Context()); return err },
		"Consumer": func() error { _, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"}); return err },
	} {
		began := time.Now()
		err := call()
		if !errors.Is(err, job.ErrNotSetUp) || errors.Is(err, job.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrNotSetUp", name, err)
			continue
		}
		contains(t, err, "prefix "+b.cfg.Prefix, "worker")
		if took := time.Since(began); took > b.bound(10*time.Second) && took > time.Duration(slack(t)*float64(10*time.Second)) {
			t.Errorf("%s: took %s, want it at once", name, took)
		}
	}
}

// While Setup is under way the streams come one by one, JOBS first. A call that comes early waits for the rest, as for a
// stream that has no leader. If it can't wait that long, its error names the missing stream.
func TestHalfSetUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, js := b.raw()
	for _, s := range []string{"KV_" + b.cfg.Prefix + "-jobs", b.cfg.Prefix + "-DEAD", b.cfg.Prefix + "-EVENTS", b.cfg.Prefix + "-SCHED"} {
		if err := js.DeleteStream(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	c, id := b.conn.Client(), job.NewID()
	wait, stop := context.WithTimeout(t.Context(), b.bound(60*time.Second))
	defer stop()
	letters := func(ctx context.Context) (err error) {
		for _, err = range c.DeadLetters(ctx) {
		}
		return err
	}
	calls := map[string]func() error{
		"Status":      func() error { _, err := c.Status(wait, id); return err },
		"DeadLetters": func() error { return letters(wait) },
		"List": func() (err error) {
			for _, err = range c.List(wait, job.ListQuery{}) {
			}
			return err
		},
		"Follow": func() (err error) {
			for _, err = range c.Follow(wait, id, true) {
			}
			return err
		},
		"Consumer": func() error {
			w, err := b.conn.Consumer(wait, natsqueue.ConsumerConfig{Worker: "w1"})
			if err == nil {
				err = w.Close(t.Context())
			}
			return err
		},
	}
	var early atomic.Bool
	early.Store(true)
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() {
			if err := call(); early.Load() || (err != nil && !errors.Is(err, job.ErrNotFound)) {
				t.Errorf("%s: got %v, before the streams were there: %t; want it to wait for them", name, err, early.Load())
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), b.bound(3*time.Second))
	defer cancel()
	err := letters(ctx)
	if !errors.Is(err, job.ErrUnavailable) || errors.Is(err, job.ErrNotSetUp) {
		t.Errorf("DeadLetters for a moment: got %v, want ErrUnavailable alone", err)
	}
	contains(t, err, "is missing: "+b.cfg.Prefix+"-DEAD")
	early.Store(false)
	if err := b.connect().Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// A call that is not answered looks why, but not with each of its tries.
func TestLooksAreFew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nc, js := b.raw()
	if err := js.DeleteStream(t.Context(), "KV_"+b.cfg.Prefix+"-jobs"); err != nil {
		t.Fatal(err)
	}
	looks := subscribe(t, nc, "$JS.API.STREAM.INFO."+b.cfg.Prefix+"-JOBS")
	const patience = 2 * time.Second // time for seven tries
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := b.conn.Client().Status(ctx, job.NewID()); !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("Status: got %v, want ErrUnavailable", err)
	}
	if got, want := pending(t, nc, looks), 5; got > want { // two a second, and the first
		t.Errorf("looks in %s: got %d, want at most %d", patience, got, want)
	}
}

// A look that gets no answer does not hold up its call: the call tries on, and may find another server.
func TestSilentLook(t *testing.T) {
	t.Parallel()
	b := silentLooks(t)
	nc, _ := b.raw()
	looks := subscribe(t, nc, "void")
	ctx, cancel := context.WithTimeout(t.Context(), b.bound(4*time.Second))
	defer cancel()
	if _, err := b.connect().Client().Status(ctx, job.NewID()); !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("Status: got %v, want ErrUnavailable", err)
	}
	if got := pending(t, nc, looks); got < 2 {
		t.Errorf("looks: got %d, want each to end soon, and the call to go on", got)
	}
}

// A busy server answers a look late. The caller must hear all the same that its prefix is wrong, not that the server is
// silent.
func TestLateLook(t *testing.T) {
	t.Parallel()
	b := silentLooks(t)
	nc, _ := b.raw()
	if _, err := nc.Subscribe("void", func(m *nats.Msg) {
		time.AfterFunc(1200*time.Millisecond, func() {
			_ = m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`))
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.connect().Client().Status(t.Context(), job.NewID()); !errors.Is(err, job.ErrNotSetUp) {
		t.Errorf("Status: got %v, want ErrNotSetUp", err)
	}
}

// silentLooks is a server without streams, on which nobody answers a look but a subscriber of "void".
func silentLooks(t *testing.T) *bundle {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(conf, []byte(`mappings: {"$JS.API.STREAM.INFO.slipway-JOBS": "void"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Config: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return &bundle{t: t, cfg: natsqueue.Config{URL: srv.ClientURL()}, slack: slack(t)}
}

func subscribe(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// pending counts what came to sub by now.
func pending(t *testing.T, nc *nats.Conn, sub *nats.Subscription) int {
	t.Helper()
	if err := nc.Flush(); err != nil { // then all of it is here
		t.Fatal(err)
	}
	n, _, err := sub.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
