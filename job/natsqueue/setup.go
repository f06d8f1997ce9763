package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// maxWaiting is how many pulls of the fleet's free slots may wait at one lane. The server drops a pull above it, so it is
// far above any fleet.
const maxWaiting = 1 << 16

// moverName is the consumer of SCHED that all movers share.
const moverName = "mover"

// Setup makes the streams, buckets and lanes, or brings them to the rules of the protocol. Many may call it at once. It
// changes nothing that is right already, and no limit of a stream that exists (see Limits): once an administrator called it, an account without the right to create can call it, too.
func (c *Conn) Setup(ctx context.Context) error {
	for _, want := range layout(c.names, c.cfg) {
		if err := c.js.Stream(want.Name).Ensure(ctx, want); err != nil {
			return c.rooms.unreserved(err)
		}
	}
	if err := c.ensureFloor(ctx); err != nil {
		return err
	}
	for _, q := range c.cfg.Queues {
		for _, p := range priorities {
			if _, err := c.ensureLane(ctx, q, p, true); err != nil {
				return err
			}
		}
	}
	_, err := c.ensureMover(ctx, true)
	return err
}

// layout is the streams of one queue. Those behind the buckets are laid out as nats.go's own
// would be, so that every tool can read them.
func layout(n names, cfg Config) []jetstream.StreamConfig {
	base := jetstream.StreamConfig{Storage: jetstream.FileStorage, Replicas: cfg.Replicas, AllowDirect: true, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, Duplicates: time.Minute}
	with := func(name, subject string, change func(*jetstream.StreamConfig)) jetstream.StreamConfig {
		s := base
		s.Name, s.Subjects = name, []string{subject}
		change(&s)
		return s
	}
	keyValue := func(bucket, description string, most int64) jetstream.StreamConfig {
		return with("KV_"+bucket, "$KV."+bucket+".>", func(s *jetstream.StreamConfig) {
			s.Description, s.MaxBytes = description, most
			s.MaxMsgsPerSubject, s.Discard, s.DenyDelete, s.AllowRollup = 1, jetstream.DiscardNew, true, true
			s.AllowMsgTTL, s.SubjectDeleteMarkerTTL = true, time.Minute
		})
	}
	return []jetstream.StreamConfig{
		with(n.jobs(), string(n)+".J.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "one token for each job that waits or runs"
			s.Retention, s.Discard, s.DenyPurge = jetstream.WorkQueuePolicy, jetstream.DiscardNew, true
			s.MaxMsgs, s.MaxBytes = cfg.MaxJobs+floorMsgs, cfg.MaxJobBytes
		}),
		with(n.sched(), string(n)+".D.>", func(s *jetstream.StreamConfig) {
			s.Description = "jobs that wait for a time"
			s.Retention, s.AllowMsgSchedules, s.AllowMsgTTL = jetstream.WorkQueuePolicy, true, true
			s.Metadata = map[string]string{jsconn.SoftLimit: strconv.FormatInt(cfg.MaxScheduledBytes, 10)}
		}),
		with(n.results(), string(n)+".R.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "one result for each decided job"
			s.MaxAge, s.MaxBytes, s.DenyPurge = cfg.ResultsAge, cfg.ResultsBytes, true
		}),
		with(n.dead(), string(n)+".X.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "jobs that slipway gave up on"
			s.MaxBytes, s.Discard = cfg.DeadBytes, jetstream.DiscardNew
		}),
		with(n.events(), string(n)+".E.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "progress and output of attempts"
			s.MaxAge, s.MaxBytes, s.Discard = cfg.EventsAge, cfg.EventsBytes, jetstream.DiscardOld
		}),
		keyValue(n.records(), "where each job stands", cfg.RecordsBytes),
		// The server reserves what a stream may take at most, and SCHED can have no limit. So its room is reserved here.
		keyValue(n.workers(), "which workers are alive, and what they run", workersBytes+cfg.MaxScheduledBytes),
	}
}

// workersBytes is room for the entries of more workers than a queue can have.
const workersBytes = 4 << 20

// floorMsgs is how many messages of JOBS are no tokens.
const floorMsgs = 1

// ensureFloor has JOBS begin with a message that stays. For a pull from the very first message of a stream, the server looks
// through the subjects of all messages; from any other place on it looks at the next message. With 100,000 jobs waiting and
// none in flight a pull took 2 ms, with a million 144 ms. A queue without the message works, only slower: so an account
// without the right, and a queue that is full, go without.
func (c *Conn) ensureFloor(ctx context.Context) error {
	have, err := c.streams.jobs.Last(ctx, c.names.floor())
	if err == nil && have == nil {
		msg := nats.NewMsg(c.names.floor())
		msg.Header.Set("Slipway-Note", "keep this message: it stands for no job, and keeps a long queue fast")
		err = c.js.EnsureCreated(ctx, "put the first message into "+c.streams.jobs.Name(), msg)
	}
	if _, denied := errors.AsType[*PermissionError](err); denied || jsconn.IsFull(err) {
		return nil
	}
	return err
}

// laneConfig sets no MaxDeliver, since attempts are counted in the record; no
// BackOff, since it replaces AckWait; no MaxAckPending, since jobs that wait for
// a retry would use it up. The server gives one message per pull, whatever a client asks for.
func (c *Conn) laneConfig(queue string, priority job.Priority) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: laneName(queue, priority), FilterSubject: c.names.lane(queue, priority),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.cfg.Timing.AckWait,
		MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting, MaxRequestBatch: 1,
	}
}

func (c *Conn) ensureLane(ctx context.Context, queue string, priority job.Priority, duringSetup bool) (jetstream.Consumer, error) {
	return c.streams.jobs.EnsureConsumer(ctx, c.laneConfig(queue, priority), c.mayChangeAckWait, duringSetup)
}

func (c *Conn) ensureMover(ctx context.Context, duringSetup bool) (jetstream.Consumer, error) {
	return c.streams.sched.EnsureConsumer(ctx, jetstream.ConsumerConfig{
		Durable: moverName, FilterSubject: string(c.names) + ".D.due.>",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second,
		MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting,
	}, c.mayChangeAckWait, duringSetup)
}

// mayChangeAckWait refuses another AckWait while workers live: their leases rest on the AckWait that they know, and a
// shorter one would give their jobs to others.
func (c *Conn) mayChangeAckWait(ctx context.Context, have, want time.Duration) error {
	if have == want {
		return nil
	}
	all, err := c.workers.list(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	return hint.With(fmt.Errorf("the queue's ack_wait is %s, and worker %s relies on it; here Timing.AckWait (timing.ack_wait) is %s", have, all[0].Name, want),
		"give all workers of a queue the same timing, or change it while none runs")
}
