package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"slipway/internal/hint"
	"slipway/job/natsqueue"
	"slipway/metrics"
	"slipway/runner"
	wsync "slipway/sync"
	"slipway/sync/s3store"
)

const serveLong = `serve takes jobs from the queue until it is told to stop.

The first SIGTERM or SIGINT drains it: it takes no more jobs, and lets those that run go on for
--soft-stop; what is not done by then goes back to the queue at no cost. The second stops it
at once. Exit code 0 after a drain.

Secrets have no flags, since every user of a machine can read command lines. The keys of the bucket are
SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, or s3: {access_key: …, secret_key: …} in the file, or what
the AWS SDK finds: AWS_ACCESS_KEY_ID and so on, a profile, a role. docs/settings.md has all settings, the
secret ones too.

At the start it checks the engine, the bucket (with a self-test) and the queue, and makes the
queue's streams if they are missing. Later it waits for whatever goes away.`

func newServe(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Take jobs from the queue until told to stop", Args: cobra.NoArgs,
		Long: serveLong,
		Example: `  worker serve --config /etc/slipway/worker.yaml
  SLIPWAY_NATS_URL=nats://queue:4222 SLIPWAY_S3_ENDPOINT=http://s3:7070 SLIPWAY_S3_BUCKET=slipway worker serve`,
	}
	c := addConfig(cmd.Flags())
	show := cmd.Flags().Bool("print-config", false, "show all settings in force and end, as worker config does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.load(a.sys.Environ); err != nil {
			return err
		}
		if *show {
			return c.print(a.sys.Out, "text")
		}
		return a.serve(cmd.Context(), c)
	}
	return cmd
}

func (a *app) serve(ctx context.Context, c *config) (err error) {
	log := newLogger(c.log, a.sys.Err)
	for _, v := range c.unknownEnv(a.sys.Environ) {
		log.Warn(v.String(), zap.String("variable", v.Name))
	}
	// An interrupt during the start ends it; afterwards they are for the worker.
	startCtx, started := a.sys.Interruptible(ctx)
	defer started()
	s, closeAll, err := c.open(startCtx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	s.say = func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) }
	started()
	return c.nats.Explain(s.run(ctx, a.sys.Interrupts))
}

// open makes a service of c. closeAll is to be called when it has ended.
func (c *config) open(ctx context.Context, log *zap.Logger) (s *service, closeAll func() error, err error) {
	var closers closers
	defer func() {
		if err != nil {
			err = errors.Join(err, closers.close())
		}
	}()
	s = c.service(log)
	listener, err := c.listen(ctx)
	if err != nil {
		return nil, nil, err
	}
	if listener != nil {
		s.listener = listener
		closers.add(func() error { return ignoreClosed(listener.Close()) })
	}
	provider, err := c.docker.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	closers.add(provider.Close)
	s.provider = provider
	store, err := c.s3.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if store != nil {
		closers.add(func() error { store.Close(); return nil })
		s.store, s.ping, s.storeName = store, pingStore(store, c.s3.prefix), c.s3.Name()
	} else {
		log.Warn("no bucket is set (s3.bucket): jobs that need a workspace are refused, and long logs are lost")
	}
	if s.stateDir == "" {
		log.Warn("no folder is set (state_dir): a finished result that the queue does not take before this worker ends is lost, and its job runs again")
	}
	c.prepareQueue(s.errors.note)
	conn, err := c.nats.Connect(ctx, "worker "+s.name)
	if err != nil {
		return nil, nil, err
	}
	closers.add(func() error { conn.Close(); return nil })
	if err := makeStreams(ctx, conn); err != nil {
		return nil, nil, err
	}
	// A right that is missing would show at the first job, hours later, by a job that can't end.
	if err := conn.Check(ctx); err != nil {
		return nil, nil, c.nats.Explain(err)
	}
	s.conn = conn
	return s, closers.close, nil
}

// service is what the settings alone say of a service.
func (c *config) service(log *zap.Logger) *service {
	return &service{
		name: cmp.Or(c.name, runner.DefaultName()), slots: c.slots, queues: c.queues, weights: c.weights, prefix: c.s3.prefix, timing: c.nats.Worker.Timing,
		softStop: c.softStop, log: log, errors: newQueueErrors(log), policy: c.policy.policy, defaults: c.policy.defaults, jobLogs: c.jobLogs, limits: c.limits,
		eventsBytes: c.nats.Worker.EventsBytes, liveShare: liveShare, stateDir: c.stateDir,
	}
}

// prepareQueue completes what the queue is connected with. onError gets what goes wrong in its background.
func (c *config) prepareQueue(onError func(error)) {
	queue := &c.nats.Worker
	queue.Queues, queue.OnError = c.queues, onError
	queue.CrashBudget = cmp.Or(queue.CrashBudget, -1) // a Config's word for none
}

func makeStreams(ctx context.Context, conn *natsqueue.Conn) error {
	if err := conn.Setup(ctx); err != nil {
		return explainSetup(fmt.Errorf("make the queue's streams: %w", err))
	}
	return nil
}

// explainSetup adds what to do about a missing right. Every other error says so itself, or has nothing to do with rights.
func explainSetup(err error) error {
	if !isDenied(err) {
		return err
	}
	return hint.With(err, "The account given with --nats-creds (SLIPWAY_NATS_CREDS) needs the right to make them, or an administrator makes them once, with worker doctor --setup")
}

// closers are called in the reverse of the order in which they were added.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (c *config) listen(ctx context.Context) (net.Listener, error) {
	if c.metricsAddr == metricsOff {
		return nil, nil
	}
	l, err := metrics.Listen(ctx, c.metricsAddr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("serve metrics: %s is taken by another program, perhaps by another worker on this machine: %w", c.metricsAddr, err)
	}
	if err != nil {
		return nil, hint.With(err, "Set --metrics-addr or SLIPWAY_METRICS_ADDR to a free host:port, or to off")
	}
	return l, nil
}

// open connects to the bucket and tests it. Nil without one.
func (c *s3Config) open(ctx context.Context) (*s3store.Store, error) {
	if c.Bucket == "" {
		return nil, nil
	}
	store, err := c.Open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if c.createBucket {
		if err := store.EnsureBucket(ctx); err != nil {
			store.Close()
			return nil, c.Explain(err)
		}
	}
	if err := store.SelfTest(ctx); err != nil {
		store.Close()
		return nil, c.Explain(err)
	}
	return store, nil
}

// pingStore asks the store for a key that is mostly not there.
func pingStore(store wsync.Store, prefix string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, err := range store.List(ctx, prefix+".slipway-ping") {
			return err
		}
		return nil
	}
}
