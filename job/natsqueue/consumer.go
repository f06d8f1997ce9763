package natsqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// ConsumerConfig says who takes jobs, and from where.
type ConsumerConfig struct {
	// Worker is the worker's name, [a-z0-9][a-z0-9-]{0,62}. No two processes may use one at a time. Required.
	Worker string
	// Queues are the queues to serve. Default: Config.Queues.
	Queues []string
	// Weights are the shares of the queues, from 1 to 100, while more than one has jobs. A queue that is not named has 1.
	Weights map[string]int
	// Slots and Version are shown to people who list the workers.
	Slots   int
	Version string
}

// Consumer is one worker's side of the queue. It is safe for concurrent use.
type Consumer struct {
	q      *Conn
	cfg    ConsumerConfig
	boot   string          // tells two processes of one worker's name apart
	ctx    context.Context // of everything in the background
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	fetch    fetcher
	presence *presence
	mover    jetstream.ConsumeContext
	unsub    func() error // from cancels and namesakes

	mu      sync.Mutex
	running map[job.ID]*lease
	// claiming are the jobs that a slot is claiming at this moment.
	claiming map[job.ID]bool
}

var _ job.Consumer = (*Consumer)(nil)

// Consumer joins the queue as a worker: it makes missing lanes, publishes that the worker
// is alive, listens for cancels, and moves due jobs. If the name is in use
// it waits until a dead process's entry expired, and otherwise fails. The caller
// calls Close.
func (c *Conn) Consumer(ctx context.Context, cfg ConsumerConfig) (*Consumer, error) {
	if err := job.CheckWorker(cfg.Worker); err != nil {
		return nil, fmt.Errorf("join the queue: Worker: %w", err)
	}
	if len(cfg.Queues) == 0 {
		cfg.Queues = c.cfg.Queues
	}
	k := &Consumer{q: c, cfg: cfg, boot: rand.Text(), running: map[job.ID]*lease{}, claiming: map[job.ID]bool{}}
	k.ctx, k.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := k.join(ctx); err != nil {
		k.cancel(err)
		k.wg.Wait()
		return nil, fmt.Errorf("join the queue as %s: %w", cfg.Worker, err)
	}
	return k, nil
}

func (k *Consumer) join(ctx context.Context) error {
	if err := CheckQueues(k.cfg.Queues); err != nil {
		return fmt.Errorf("setting Queues: %w", err)
	}
	if err := CheckWeights(k.cfg.Queues, k.cfg.Weights); err != nil {
		return fmt.Errorf("setting Weights: %w", err)
	}
	k.fetch.js, k.fetch.onError, k.fetch.ctx, k.fetch.handoff = k.q.js, k.q.cfg.OnError, k.ctx, make(chan jetstream.Msg)
	k.fetch.awake = make(chan struct{}, 1)
	k.fetch.healer = &healer{jobs: k.q.streams.jobs, remake: func(ctx context.Context, queue string, p job.Priority) error {
		_, err := k.q.ensureLane(ctx, queue, p, false)
		return err
	}}
	for _, queue := range k.cfg.Queues {
		for _, p := range priorities {
			cons, err := k.q.ensureLane(ctx, queue, p, false)
			if err != nil {
				return err
			}
			pulls := k.q.streams.jobs.Pulls(laneName(queue, p))
			k.fetch.lanes = append(k.fetch.lanes, &lane{queue: queue, priority: p, consumer: cons, pulls: pulls, weight: weightOf(k.cfg.Weights, queue, p)})
		}
	}
	k.presence = newPresence(k)
	if err := k.listen(); err != nil { // before the name is claimed: a namesake that finds the name taken asks this process
		return err
	}
	err := k.presence.claimName(ctx)
	if err == nil {
		err = k.startMover(ctx)
	}
	if err != nil {
		_ = k.unsub()
		return err
	}
	k.wg.Go(func() { k.presence.keep(k.ctx) })
	k.wg.Go(func() { (&janitor{q: k.q, boot: k.boot}).run(k.ctx) })
	return nil
}

// control is what a cancel pushes to a worker.
type control struct {
	ID   job.ID         `json:"id"`
	Mode job.CancelMode `json:"mode"`
}

// listen takes cancels, and answers a process that wants this one's name. A lost cancel does no harm: each Extend reads the
// record.
func (k *Consumer) listen() error {
	core, n := k.q.js.Core(), k.q.names
	alive, err := core.Subscribe(n.process(k.cfg.Worker, k.boot), func(m *nats.Msg) { _ = m.Respond(nil) })
	if err != nil {
		return fmt.Errorf("listen for namesakes: %w", err)
	}
	cancels, err := core.Subscribe(n.control(k.cfg.Worker), func(m *nats.Msg) {
		var ctl control
		if json.Unmarshal(m.Data, &ctl) != nil {
			return
		}
		if l := k.lease(ctl.ID); l != nil {
			l.deliver(ctl.Mode)
		}
	})
	if err != nil {
		_ = alive.Unsubscribe()
		return fmt.Errorf("listen for cancels: %w", err)
	}
	k.unsub = func() error { return errors.Join(alive.Unsubscribe(), cancels.Unsubscribe()) }
	return nil
}

// Next waits for a job and claims it. See job.Consumer.
func (k *Consumer) Next(ctx context.Context) (job.Lease, error) {
	for {
		msg, err := k.fetch.take(ctx)
		if err != nil {
			return nil, err
		}
		if msg == nil {
			continue
		}
		if ctx.Err() != nil {
			k.fetch.giveBack(ctx, msg)
			return nil, context.Cause(ctx)
		}
		l, err := k.claim(ctx, msg)
		if err != nil {
			// The token comes again by itself; the worker that gets it then tries anew.
			k.q.cfg.OnError(err)
			continue
		}
		if l == nil {
			continue
		}
		if ctx.Err() != nil {
			releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
			err := l.Release(releaseCtx)
			cancel()
			if err != nil {
				k.q.cfg.OnError(err)
			}
			return nil, context.Cause(ctx)
		}
		return l, nil
	}
}

// lease returns the lease of a running job, nil if this worker has none.
func (k *Consumer) lease(id job.ID) *lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[id]
}

// remember puts l on the running list.
func (k *Consumer) remember(l *lease) {
	k.mu.Lock()
	k.running[l.d.ID] = l
	k.mu.Unlock()
	k.presence.announce()
}

// forget takes l off the running list.
func (k *Consumer) forget(l *lease) {
	k.mu.Lock()
	if k.running[l.d.ID] == l {
		delete(k.running, l.d.ID)
	}
	k.mu.Unlock()
	k.presence.announce()
}

// progressing lists the claims whose leases were confirmed lately. A hung job in a live process is not among them: it must
// not keep others from taking it over.
func (k *Consumer) progressing() []RunningJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []RunningJob
	for id, l := range k.running {
		if l.fresh(k.q.cfg.Timing.Lease) {
			all = append(all, RunningJob{ID: id, Fence: l.d.Fence})
		}
	}
	return all
}

// Close leaves the queue: it fetches nothing any more, gives back what arrives, and removes
// the worker's entry. It waits for all that until ctx ends. Leases that
// are still held keep working until they are ended. Call it after the last Next
// returned; it may be called twice.
func (k *Consumer) Close(ctx context.Context) error {
	first := k.fetch.close()
	if first {
		_ = k.unsub() // the connection may be gone already
		k.mover.Drain()
		k.cancel(errClosed)
	}
	done := make(chan struct{})
	go func() { defer close(done); k.fetch.wg.Wait(); k.wg.Wait(); <-k.mover.Closed() }()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("leave the queue: %w", context.Cause(ctx))
	}
	if first && k.q.Connected() {
		return k.presence.leave(ctx)
	}
	return nil
}
