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
	// StateDir is a folder on a disk that outlives the process. A finished result that the queue does not take is kept there, in
	// the outbox, and committed once the queue takes it, if no other attempt owns the job by then; see OutboxUse. Several workers may
	// share the folder. Empty: no outbox, and such a result is lost with its lease, so that the job runs again.
	StateDir string
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
	outbox   *outbox // nil: none
	mover    jetstream.ConsumeContext
	unsub    func() error   // from cancels and namesakes
	kept     chan struct{}  // closed when presence renews the worker's entry no more
	claims   sync.WaitGroup // of Next, which may return before the claim it began has ended

	closing sync.Mutex
	left    bool // the worker's entry is removed; guarded by closing

	mu      sync.Mutex
	running map[job.ID]*lease
	// claiming are the jobs that a slot is claiming at this moment.
	claiming map[job.ID]bool
}

var _ job.Consumer = (*Consumer)(nil)

// Consumer joins the queue as a worker: it makes missing lanes, publishes that the worker is alive, listens for cancels, and
// moves due jobs. The caller calls Close.
//
// If another process goes by that name and answers, Consumer fails. If the server says that this process is not connected,
// Consumer replaces its entry at once. If neither can be told, Consumer waits until the entry is gone or was not renewed for
// Timing.DeadMan.
func (c *Conn) Consumer(ctx context.Context, cfg ConsumerConfig) (*Consumer, error) {
	if err := job.CheckWorker(cfg.Worker); err != nil {
		return nil, fmt.Errorf("join the queue: Worker: %w", err)
	}
	if len(cfg.Queues) == 0 {
		cfg.Queues = c.cfg.Queues
	}
	k := &Consumer{
		q: c, cfg: cfg, boot: rand.Text(), kept: make(chan struct{}), running: map[job.ID]*lease{}, claiming: map[job.ID]bool{},
	}
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
	var err error
	if k.outbox, err = openOutbox(k.cfg.StateDir, k.q.cfg.Prefix); err != nil {
		return err
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
	err = k.presence.claimName(ctx)
	if err == nil {
		err = k.startMover(ctx)
	}
	if err != nil {
		_ = k.unsub()
		return err
	}
	k.wg.Go(func() {
		defer close(k.kept)
		k.presence.keep(k.ctx)
	})
	k.wg.Go(func() { (&janitor{q: k.q, boot: k.boot}).run(k.ctx) })
	if k.outbox != nil {
		k.wg.Go(func() { (&replays{q: k.q, box: k.outbox, boot: k.boot, lease: k.lease}).run(k.ctx) })
	}
	return nil
}

// Outbox tells what the worker's outbox has. Without one it is zero.
func (k *Consumer) Outbox() OutboxUse { return k.outbox.stats() }

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
		if l := k.claimFor(ctx, msg); l != nil {
			return l, nil
		}
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

// Close leaves the queue: it fetches nothing any more, removes the worker's entry, and gives back what arrives. It waits for
// all that until ctx ends; a call after that goes on with what the first one left. Leases that are still held keep working
// until they are ended. Call it after the last Next returned; it may be called twice.
func (k *Consumer) Close(ctx context.Context) error {
	if err := k.close(ctx); err != nil {
		return fmt.Errorf("leave the queue: %w", err)
	}
	return nil
}

func (k *Consumer) close(ctx context.Context) error {
	k.closing.Lock()
	defer k.closing.Unlock()
	first := k.fetch.close()
	if first {
		k.mover.Drain()
		k.cancel(errClosed)
	}
	fault := k.leave(ctx)
	if first { // a process that wants the name is told that this one lives until the name is free
		_ = k.unsub() // the connection may be gone already
	}
	done := make(chan struct{})
	go func() { defer close(done); k.fetch.wg.Wait(); k.claims.Wait(); k.wg.Wait(); <-k.mover.Closed() }()
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return fault
}

// leave removes the worker's entry, once. A server that is not reachable removes it by itself later.
func (k *Consumer) leave(ctx context.Context) error {
	select {
	case <-k.kept: // else the entry would come back
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if k.left || !k.q.Connected() {
		return nil
	}
	err := k.presence.leave(ctx)
	k.left = err == nil
	return err
}
