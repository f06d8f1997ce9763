package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"slipway/cmd/internal/cli"
	"slipway/container"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/metrics"
	"slipway/runner"
	wsync "slipway/sync"
)

// service is a worker with everything around it. What it is made of belongs to
// the caller, who closes it after the service has ended.
type service struct {
	conn     *natsqueue.Conn
	provider container.Provider
	store    wsync.Store                 // nil: none
	ping     func(context.Context) error // asks the store; nil without one
	dataDir  string                      // a folder whose disk must not be full; empty: none of ours
	stateDir string                      // a folder for finished results that the queue did not take; empty: none
	name     string
	prefix   string
	// storeName says in results where the store is; empty: nowhere that outlives the program.
	storeName string
	jobLogs   jobLogs
	limits    limits
	// eventsBytes is the size of the stream of events, 0 for the queue's default, of which one job may take a liveShare-th.
	eventsBytes, liveShare int64
	queues                 []string
	weights                map[string]int // shares of the queues; nil: alike
	slots                  int
	timing                 job.Timing
	errors                 *queueErrors // nil: nobody counts them
	policy                 container.Policy
	defaults               container.Resources
	softStop               time.Duration // 0: running jobs are stopped at once, which is not what it means to a runner
	listener               net.Listener  // of the metrics; nil: they are not served
	log                    *zap.Logger
	// say tells the person in front of the program what goes on.
	say func(format string, args ...any)
}

// closeLimit bounds the return of what a consumer still holds.
const closeLimit = 10 * time.Second

// minFree is how much room a data folder needs for the worker to be ready.
const minFree = 256 << 20

// run works until the first value of interrupts, and stops softly then; at the
// second it stops at once. It returns when nothing of it is left.
func (s *service) run(ctx context.Context, interrupts <-chan struct{}) (err error) {
	registry := prometheus.NewRegistry()
	watch := &busyObserver{Observer: metrics.New(registry, s.queues...)}
	recorder := watch.Observer.(*metrics.Recorder)
	worker, consumer, err := s.worker(ctx, watch)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, consumer.Close(ctx))
	}()

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	health := metrics.NewHealth(background, recorder.IsDraining, s.checks()...)
	if s.listener != nil {
		if s.errors != nil {
			registry.MustRegister(s.errors.collector())
		}
		registry.MustRegister(health, metrics.QueueCollector(background, s.depth), metrics.RoomCollector(background, s.room), outboxCollector(consumer),
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		handler := metrics.Handler(metrics.HandlerConfig{Gatherer: registry, Health: health})
		all.Go(func() {
			if err := metrics.ServeListener(background, s.listener, handler); err != nil {
				s.log.Error("serve metrics", zap.Error(err))
			}
		})
	}
	return s.drainable(ctx, worker, watch, interrupts)
}

// runnerConfig is what worker makes the runner of, but for the queue.
func (s *service) runnerConfig(observer runner.Observer) runner.Config {
	cfg := runner.Config{
		Name: s.name, Provider: s.provider, Store: s.store, Prefix: s.prefix, Slots: s.slots, Policy: s.policy,
		Resources: s.defaults, Timing: s.timing, SoftStop: cmp.Or(s.softStop, -1), Logger: s.log, Observer: observer,
		StoreName: s.storeName,
	}
	s.jobLogs.apply(&cfg, s.eventsBytes, s.liveShare)
	s.limits.apply(&cfg)
	return cfg
}

// consumerConfig is what worker makes the queue's consumer of.
func (s *service) consumerConfig() natsqueue.ConsumerConfig {
	return natsqueue.ConsumerConfig{Worker: s.name, Queues: s.queues, Weights: s.weights, Slots: s.slots, StateDir: s.stateDir, Version: cli.Version()}
}

func (s *service) worker(ctx context.Context, observer runner.Observer) (*runner.Worker, *natsqueue.Consumer, error) {
	consumer, err := s.conn.Consumer(ctx, s.consumerConfig())
	if err != nil {
		return nil, nil, err
	}
	cfg := s.runnerConfig(observer)
	cfg.Queue = consumer
	w, err := runner.New(cfg)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, nil, errors.Join(err, consumer.Close(ctx))
	}
	return w, consumer, nil
}

// drainable runs worker, and stops it as interrupts say.
func (s *service) drainable(ctx context.Context, worker *runner.Worker, watch *busyObserver, interrupts <-chan struct{}) error {
	runCtx, drain := context.WithCancel(ctx)
	defer drain()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(runCtx) }()
	received, stopped := 0, ctx.Done()
	for {
		select {
		case err := <-ended:
			return err
		case <-stopped:
			stopped = nil
			if endedBy(ctx) != nil {
				// Nobody is there to whom jobs could be given back, so there is nothing to wait for.
				s.say("a development server ended: boxes are destroyed")
				worker.Kill()
			}
		case <-interrupts:
			received++
			switch received {
			case 1:
				s.say("draining: no new jobs; %s, for up to %s. Once more stops at once", watch.waitsFor(), s.softStop)
				drain()
			case 2:
				s.say("stopping at once: boxes are destroyed, their jobs go back to the queue")
				worker.Kill()
			}
		}
	}
}

// checks are what a worker can't do without.
func (s *service) checks() []metrics.Check {
	checks := []metrics.Check{
		{Name: "nats", Run: s.conn.Check},
		{Name: "engine", Run: s.provider.Check},
	}
	if s.ping != nil {
		checks = append(checks, metrics.Check{Name: "store", Run: s.ping})
	}
	if s.dataDir != "" {
		checks = append(checks, metrics.DiskCheck(s.dataDir, minFree))
	}
	return checks
}

func (s *service) depth(ctx context.Context) ([]metrics.Depth, error) {
	lanes, err := s.conn.Depth(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]metrics.Depth, len(lanes))
	for i, l := range lanes {
		out[i] = metrics.Depth{Queue: l.Queue, Priority: string(l.Priority), Pending: int(l.Waiting), InFlight: l.InFlight, Oldest: l.OldestAge}
	}
	return out, nil
}

func (s *service) room(ctx context.Context) ([]metrics.StreamUse, error) {
	uses, err := s.conn.StoreUse(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]metrics.StreamUse, len(uses))
	for i, u := range uses {
		out[i] = metrics.StreamUse{Part: u.Part, Bytes: u.Bytes, MaxBytes: u.MaxBytes}
	}
	return out, nil
}

func outboxCollector(consumer *natsqueue.Consumer) prometheus.Collector {
	return metrics.OutboxCollector(func() metrics.OutboxUse {
		u := consumer.Outbox()
		return metrics.OutboxUse{Waiting: u.Waiting, Committed: u.Committed, Late: u.Late, Lost: u.Lost}
	})
}

// busyObserver knows how many jobs run, for the person who drains a worker.
type busyObserver struct {
	runner.Observer
	mu   sync.Mutex
	busy int
}

// Slots remembers how many are busy.
func (o *busyObserver) Slots(total, busy int) {
	o.mu.Lock()
	o.busy = busy
	o.mu.Unlock()
	o.Observer.Slots(total, busy)
}

func (o *busyObserver) waitsFor() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.busy {
	case 0:
		return "none is running"
	case 1:
		return "waiting for 1 running job"
	}
	return fmt.Sprintf("waiting for %d running jobs", o.busy)
}
