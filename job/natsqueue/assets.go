package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// maxWaiting is how many pulls of the fleet's free slots may wait at one lane. A
// pull above it is dropped, so it is far above any fleet.
const maxWaiting = 1 << 16

// moverName is the consumer of SCHED that all movers share.
const moverName = "mover"

// Setup makes the streams, buckets and lanes, or brings them to c's settings. It
// may be called by many at once, and changes nothing that is right already: an
// account without the right to create can call it once an administrator did.
func (c *Conn) Setup(ctx context.Context) error {
	for _, s := range c.streams() {
		if err := c.setupStream(ctx, s); err != nil {
			return err
		}
	}
	for _, q := range c.cfg.Queues {
		for _, class := range classes {
			if _, err := c.setupConsumer(ctx, c.retryPlain, c.names.jobs(), c.laneConfig(q, class)); err != nil {
				return err
			}
		}
	}
	_, err := c.setupConsumer(ctx, c.retryPlain, c.names.sched(), c.moverConfig())
	return err
}

// streams of one queue. Those behind the buckets are laid out as nats.go's own
// would be, so that every tool can read them.
func (c *Conn) streams() []jetstream.StreamConfig {
	n, cfg := c.names, c.cfg
	base := jetstream.StreamConfig{Storage: jetstream.FileStorage, Replicas: cfg.Replicas, AllowDirect: true, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, Duplicates: time.Minute}
	with := func(name, subject string, change func(*jetstream.StreamConfig)) jetstream.StreamConfig {
		s := base
		s.Name, s.Subjects = name, []string{subject}
		change(&s)
		return s
	}
	keyValue := func(s *jetstream.StreamConfig) {
		s.MaxMsgsPerSubject, s.Discard, s.DenyDelete, s.AllowRollup = 1, jetstream.DiscardNew, true, true
		s.AllowMsgTTL, s.SubjectDeleteMarkerTTL = true, time.Minute
	}
	return []jetstream.StreamConfig{
		with(n.jobs(), string(n)+".J.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "one token for each job that waits or runs"
			s.Retention, s.Discard, s.DenyPurge = jetstream.WorkQueuePolicy, jetstream.DiscardNew, true
			s.MaxMsgs, s.MaxBytes = cfg.MaxJobs, cfg.MaxJobBytes
		}),
		with(n.sched(), string(n)+".D.>", func(s *jetstream.StreamConfig) {
			s.Description = "jobs that wait for a time"
			s.Retention, s.AllowMsgSchedules, s.AllowMsgTTL = jetstream.WorkQueuePolicy, true, true
		}),
		with(n.results(), string(n)+".R.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "one result for each decided job"
			s.MaxAge, s.DenyPurge = cfg.ResultsAge, true
		}),
		with(n.dead(), string(n)+".X.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "jobs that slipway gave up on"
		}),
		with(n.events(), string(n)+".E.*.*.*", func(s *jetstream.StreamConfig) {
			s.Description = "progress and output of attempts"
			s.MaxAge, s.MaxBytes, s.Discard = cfg.EventsAge, cfg.EventsBytes, jetstream.DiscardOld
		}),
		with(bucket(n.records()), key(n.records(), ">"), func(s *jetstream.StreamConfig) {
			s.Description = "where each job stands"
			keyValue(s)
		}),
		with(bucket(n.workers()), key(n.workers(), ">"), func(s *jetstream.StreamConfig) {
			s.Description = "which workers are alive, and what they run"
			keyValue(s)
		}),
	}
}

func (c *Conn) setupStream(ctx context.Context, want jetstream.StreamConfig) error {
	op, subject := "set up stream "+want.Name, "$JS.API.STREAM.INFO."+want.Name
	var have *jetstream.StreamInfo
	err := c.retryPlain(ctx, op, subject, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, want.Name)
		if err == nil {
			have = s.CachedInfo()
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
	if err != nil || (have != nil && sameStream(have.Config, want)) {
		return noJetStream(err)
	}
	if have != nil {
		// What others set beside ours stays.
		want = mergeStream(have.Config, want)
		return c.retryPlain(ctx, op, "$JS.API.STREAM.UPDATE."+want.Name, func(ctx context.Context) error {
			_, err := c.js.UpdateStream(ctx, want)
			return err
		})
	}
	return c.retryPlain(ctx, op, "$JS.API.STREAM.CREATE."+want.Name, func(ctx context.Context) error {
		_, err := c.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // somebody else was faster
		}
		return err
	})
}

// noJetStream says what to do about a server that runs without JetStream.
func noJetStream(err error) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("%w: start nats-server with -js, or enable JetStream for this account", err)
	}
	return err
}

// sameStream compares what slipway sets and an operator may wish to change. The
// replicas are not among it: a worker or a doctor that was not told of them would
// take a cluster's copies away.
func sameStream(have, want jetstream.StreamConfig) bool {
	return have.MaxMsgs == want.MaxMsgs && have.MaxBytes == want.MaxBytes && have.MaxAge == want.MaxAge &&
		have.AllowDirect == want.AllowDirect && have.Retention == want.Retention &&
		have.Discard == want.Discard && have.DenyPurge == want.DenyPurge && have.AllowMsgTTL == want.AllowMsgTTL &&
		have.AllowMsgSchedules == want.AllowMsgSchedules
}

func mergeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	have.MaxMsgs, have.MaxBytes, have.MaxAge = want.MaxMsgs, want.MaxBytes, want.MaxAge
	have.AllowDirect, have.Retention, have.Discard = want.AllowDirect, want.Retention, want.Discard
	have.DenyPurge, have.AllowMsgTTL, have.AllowMsgSchedules = want.DenyPurge, want.AllowMsgTTL, want.AllowMsgSchedules
	return have
}

// laneConfig: no MaxDeliver, since attempts are counted in the record; no
// BackOff, since it replaces AckWait; no MaxAckPending, since jobs that wait for
// a retry would use it up. One message per pull is all that the server gives.
func (c *Conn) laneConfig(queue string, class job.Priority) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: laneName(queue, class), FilterSubject: c.names.lane(queue, class),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.cfg.Timing.AckWait,
		MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting, MaxRequestBatch: 1,
	}
}

func (c *Conn) moverConfig() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: moverName, FilterSubject: string(c.names) + ".D.due.>",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second,
		MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting,
	}
}

// setupConsumer looks for the consumer first: a worker needs no right to make one.
func (c *Conn) setupConsumer(ctx context.Context, retry attempt, stream string, want jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	op := "set up consumer " + want.Durable + " of " + stream
	var cons jetstream.Consumer
	err := retry(ctx, op, "$JS.API.CONSUMER.INFO."+stream+"."+want.Durable, func(ctx context.Context) (err error) {
		cons, err = c.js.Consumer(ctx, stream, want.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			cons = nil
			return nil
		}
		return err
	})
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("%w: run Setup first", err)
		}
		return nil, err
	}
	if cons != nil {
		have := cons.CachedInfo().Config
		if have.AckWait == want.AckWait && have.MaxDeliver == want.MaxDeliver && len(have.BackOff) == 0 {
			return cons, nil
		}
		if err := c.mayChangeAckWait(ctx, have.AckWait, want.AckWait); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	subject := fmt.Sprintf("$JS.API.CONSUMER.CREATE.%s.%s.%s", stream, want.Durable, want.FilterSubject)
	err = retry(ctx, op, subject, func(ctx context.Context) (err error) {
		cons, err = c.js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	})
	return cons, err
}

// mayChangeAckWait refuses it while workers live: their leases rest on the one that
// they know, and a shorter one would give their jobs to others.
func (c *Conn) mayChangeAckWait(ctx context.Context, have, want time.Duration) error {
	if have == want {
		return nil
	}
	all, err := c.Workers(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	return fmt.Errorf("the queue's ack_wait is %s, and worker %s relies on it; here Timing.AckWait (timing.ack_wait) is %s: give all workers of a queue the same timing, or change it while none runs", have, all[0].Name, want)
}

// longDelay is shorter where the clocks are, as they are in tests.
func (c *Conn) longDelay() time.Duration { return min(longDelay, c.cfg.Timing.AckWait) }
