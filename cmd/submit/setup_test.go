package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slipway/cmd/internal/cli"
	"slipway/container"
	"slipway/container/local"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/runner"
	"slipway/sync/wsynctest"
	"slipway/test/eventually"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// bundle is the program on a system of the test's own.
type bundle struct {
	t          *testing.T
	app        *app
	out, err   *eventually.Buffer
	in         *strings.Reader
	interrupts chan struct{}
	srv        *natsserver.Server // after withQueue
}

// setup makes a program without a queue.
func setup(t *testing.T) *bundle {
	b := &bundle{t: t, out: &eventually.Buffer{}, err: &eventually.Buffer{}, in: strings.NewReader(""), interrupts: make(chan struct{}, 4)}
	b.app = &app{
		sys:     cli.System{In: b.in, Out: b.out, Err: b.err, Interrupts: b.interrupts},
		connect: connectNATS,
	}
	return b
}

// withQueue gives the program a queue on a real, embedded server.
func (b *bundle) withQueue(change ...func(*natsqueue.Config)) *natsqueue.Conn {
	b.t.Helper()
	srv, err := natsserver.Start(natsserver.Options{Dir: b.t.TempDir(), NoListen: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(srv.Close)
	open := func(ctx context.Context, prefix string) (*natsqueue.Conn, error) {
		cfg := natsqueue.Config{InProcess: srv, Prefix: prefix}
		for _, c := range change {
			c(&cfg)
		}
		return natsqueue.Connect(ctx, cfg)
	}
	b.srv = srv
	conn, err := open(b.t.Context(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(conn.Close)
	if err := conn.Setup(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.app.connect = func(ctx context.Context, n cli.NATS) (job.Client, func(), error) {
		c, err := open(ctx, n.Prefix)
		if err != nil {
			return nil, nil, err
		}
		return c.Client(), c.Close, nil
	}
	return conn
}

// wrapQueue puts a queue of the test's own around the program's.
func (b *bundle) wrapQueue(wrap func(job.Client) job.Client) {
	connect := b.app.connect
	b.app.connect = func(ctx context.Context, n cli.NATS) (job.Client, func(), error) {
		c, end, err := connect(ctx, n)
		return wrap(c), end, err
	}
}

// withWorker lets a worker serve the queue, with boxes that are plain processes.
func (b *bundle) withWorker(conn *natsqueue.Conn, change ...func(*runner.Config)) {
	b.t.Helper()
	if runtime.GOOS != "linux" {
		b.t.Skip("needs boxes, which without an engine exist on Linux only")
	}
	// Not t.TempDir: under root its parent keeps the steps' user out.
	boxes, err := local.New(local.Config{AllowLocal: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { boxes.Close() })
	consumer, err := conn.Consumer(b.t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := runner.Config{
		Name: "w1", Queue: consumer, Provider: boxes, Store: wsynctest.NewStore(), Slots: 2, SoftStop: -1,
		Policy: container.Policy{Allow: container.Relaxations()},
	}
	for _, c := range change {
		c(&cfg)
	}
	w, err := runner.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.t.Errorf("worker: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := consumer.Close(ctx); err != nil {
			b.t.Errorf("close consumer: %v", err)
		}
	})
}

// run runs the program with args and returns what it printed since the last run.
func (b *bundle) run(args ...string) (stdout, stderr string, code int) {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	code = cli.Execute(b.t.Context(), b.app.sys, newRoot(b.app), args)
	return b.out.String(), b.err.String(), code
}

// stdin is what the next run reads.
func (b *bundle) stdin(s string) { b.in.Reset(s) }

// file writes a job file.
func (b *bundle) file(content string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}
