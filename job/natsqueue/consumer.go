package natsqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// ConsumerConfig says who takes jobs, and from where.
type ConsumerConfig struct {
	// Worker is the worker's name, [a-z0-9][a-z0-9-]{0,62}. No two processes may use one at a time. Required.
	Worker string
	// Queues are served alike. Default: Config.Queues.
	Queues []string
	// Slots and Version are shown to people who list the workers.
	Slots   int
	Version string
}

// Consumer is one worker's side of the queue. It is safe for concurrent use.
type Consumer struct {
	conn   *Conn
	cfg    ConsumerConfig
	boot   string
	began  time.Time
	lanes  []*lane
	ctx    context.Context // of everything in the background
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	news   chan struct{} // the running list changed

	handoff chan jetstream.Msg // from a pull to a waiting Next

	mu      sync.Mutex
	running map[job.ID]*lease
	// claiming are the jobs that a slot is claiming at this moment.
	claiming map[job.ID]bool
	waiting  int   // calls of Next that wait for a pull
	fatal    error // why nothing can be fetched at all
	closed   bool
	unsub    func() error
	mover    jetstream.ConsumeContext
}

var _ job.Consumer = (*Consumer)(nil)

// Consumer joins the queue as a worker: makes missing lanes, says that the worker
// is alive, listens for cancels, and moves what comes due. If the name is in use
// it waits until a dead process's entry expired, and otherwise fails. The caller
// calls Close.
func (c *Conn) Consumer(ctx context.Context, cfg ConsumerConfig) (*Consumer, error) {
	if err := job.CheckWorker(cfg.Worker); err != nil {
		return nil, fmt.Errorf("join the queue: Worker: %w", err)
	}
	if len(cfg.Queues) == 0 {
		cfg.Queues = c.cfg.Queues
	}
	k := &Consumer{
		conn: c, cfg: cfg, boot: rand.Text(), began: time.Now().UTC(),
		news: make(chan struct{}, 1), handoff: make(chan jetstream.Msg), running: map[job.ID]*lease{}, claiming: map[job.ID]bool{},
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
	for _, q := range k.cfg.Queues {
		for _, class := range classes {
			cons, err := k.conn.setupConsumer(ctx, k.conn.retry, k.conn.names.jobs(), k.conn.laneConfig(q, class))
			if err != nil {
				return err
			}
			k.lanes = append(k.lanes, newLane(k.conn, cons, q, class))
		}
	}
	if err := k.claimName(ctx); err != nil {
		return err
	}
	if err := k.listen(); err != nil {
		return err
	}
	if err := k.startMover(ctx); err != nil {
		_ = k.unsub()
		return err
	}
	k.wg.Go(k.live)
	k.wg.Go(k.janitor)
	return nil
}

// control is what a cancel pushes to a worker.
type control struct {
	ID   job.ID         `json:"id"`
	Mode job.CancelMode `json:"mode"`
}

// listen takes cancels. A lost one does no harm: each Extend reads the record.
func (k *Consumer) listen() error {
	sub, err := k.conn.nc.Subscribe(k.conn.names.control(k.cfg.Worker), func(m *nats.Msg) {
		var ctl control
		if json.Unmarshal(m.Data, &ctl) != nil {
			return
		}
		if l := k.lease(ctl.ID); l != nil {
			l.deliver(ctl.Mode)
		}
	})
	if err != nil {
		return fmt.Errorf("listen for cancels: %w", err)
	}
	k.unsub = sub.Unsubscribe
	return nil
}

func (k *Consumer) lease(id job.ID) *lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[id]
}

// forget takes l off the running list.
func (k *Consumer) forget(l *lease) {
	k.mu.Lock()
	if k.running[l.d.ID] == l {
		delete(k.running, l.d.ID)
	}
	k.mu.Unlock()
	k.announce()
}

// announce has the running list published soon.
func (k *Consumer) announce() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// Close leaves the queue: nothing is fetched any more, what arrives is given back,
// the worker's entry is removed. It waits for all that until ctx ends. Leases that
// are still held keep working until they are ended. Call it after the last Next
// returned; it may be called twice.
func (k *Consumer) Close(ctx context.Context) error {
	k.mu.Lock()
	first := !k.closed
	k.closed = true
	k.mu.Unlock()
	if first {
		_ = k.unsub() // the connection may be gone already
		k.mover.Drain()
		k.cancel(errClosed)
	}
	done := make(chan struct{})
	go func() { defer close(done); k.wg.Wait(); <-k.mover.Closed() }()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("leave the queue: %w", context.Cause(ctx))
	}
	if first && k.conn.Connected() {
		return k.leave(ctx)
	}
	return nil
}
