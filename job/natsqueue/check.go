package natsqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// probe is the name that checks go by, in place of a job's or a worker's.
const probe = "probe"

// MissingError is a stream or a consumer that is not there. Setup makes it.
type MissingError struct {
	// Kind is stream or consumer.
	Kind string
	// Name is its name on the server.
	Name string

	err error
}

// Error names it, and says what makes it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("look at %s %s: %v: start a worker whose user may create it, or call Setup", e.Kind, e.Name, e.err)
}

// Unwrap returns the server's answer.
func (e *MissingError) Unwrap() error { return e.err }

// Check uses every right that a worker needs, and returns job.ErrNotSetUp if there is no stream at all, or one error for each that
// is denied or does not work, with its subject; a MissingError for what was not set up; and one for a timing that the
// living workers of the queue do not have. It leaves no job, result or record
// behind: the writes expect a sequence that can't be, so that a server that grants
// the right refuses the write. One key of workers is really written, and expires.
func (c *Conn) Check(ctx context.Context) error {
	if !c.Connected() {
		return fmt.Errorf("%w: no connection to the NATS server at %s", job.ErrUnavailable, c.where())
	}
	absent, errs := c.checkStreams(ctx)
	if len(absent) == len(c.streams()) {
		return fmt.Errorf("check the queue: %w", c.notSetUp(jetstream.ErrStreamNotFound))
	}
	errs = append(errs, c.checkLanes(ctx)...)
	_, err := c.checkConsumer(ctx, c.names.sched(), moverName)
	errs = append(errs, err)
	n := c.names
	for _, subject := range []string{
		n.token(job.DefaultQueue, job.PriorityNormal, probe), n.wait(probe, 0, 0), n.result(job.DefaultQueue, probe, 0),
		n.letter(job.DefaultQueue, probe, 0), n.event(probe, probe, 0), key(n.records(), probe),
	} {
		errs = append(errs, c.checkWrite(ctx, subject))
	}
	// These would wait for a stream that is not there.
	if !absent[bucket(n.workers())] {
		errs = append(errs, c.checkKey(ctx))
	}
	if !absent[bucket(n.records())] {
		errs = append(errs, c.checkRead(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check the queue: %w", err)
	}
	return nil
}

// checkStreams tells which ones the server says are not there, and all that is wrong.
func (c *Conn) checkStreams(ctx context.Context) (absent map[string]bool, errs []error) {
	absent = map[string]bool{}
	for _, s := range c.streams() {
		err := c.checkStream(ctx, s.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			absent[s.Name] = true
		}
		errs = append(errs, err)
	}
	return absent, errs
}

// checkLanes looks at the consumers of the queues, and once at whether their timing is that of this connection.
func (c *Conn) checkLanes(ctx context.Context) []error {
	var errs []error
	var timing error
	for _, q := range c.cfg.Queues {
		for _, class := range classes {
			have, err := c.checkConsumer(ctx, c.names.jobs(), laneName(q, class))
			if err == nil && timing == nil {
				timing = c.mayChangeAckWait(ctx, have.AckWait, c.laneConfig(q, class).AckWait)
			}
			errs = append(errs, err)
		}
	}
	return append(errs, timing)
}

func (c *Conn) checkStream(ctx context.Context, name string) error {
	err := c.brief(ctx, "look at stream "+name, "$JS.API.STREAM.INFO."+name, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, name)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &MissingError{Kind: "stream", Name: name, err: jetstream.ErrStreamNotFound}
	}
	return err
}

func (c *Conn) checkConsumer(ctx context.Context, stream, name string) (have jetstream.ConsumerConfig, err error) {
	err = c.brief(ctx, "look at consumer "+name, "$JS.API.CONSUMER.INFO."+stream+"."+name, func(ctx context.Context) error {
		cons, err := c.js.Consumer(ctx, stream, name)
		if err == nil {
			have = cons.CachedInfo().Config
		}
		return err
	})
	for _, missing := range []error{jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound} {
		if errors.Is(err, missing) {
			err = &MissingError{Kind: "consumer", Name: name, err: missing}
		}
	}
	return have, err
}

// brief tries once: a check that waits would not be one.
func (c *Conn) brief(ctx context.Context, op, subject string, try func(context.Context) error) error {
	err := c.once(ctx, subject, try)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, job.ErrUnavailable):
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s (%s): %w", op, subject, noJetStream(err))
}

// checkWrite proves the right to publish by a write that is refused for its sequence.
func (c *Conn) checkWrite(ctx context.Context, subject string) error {
	return c.brief(ctx, "write", subject, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, nats.NewMsg(subject), jetstream.WithExpectLastSequencePerSubject(math.MaxInt64))
		if conflicts(err) {
			return nil
		}
		return err
	})
}

// replicaTime is how long a replica may take to hear of a write.
const replicaTime = 2 * time.Second

// checkKey writes a key that expires by itself, and reads it. A replica may answer that has not
// heard of it yet, so the key gets a moment to be there.
func (c *Conn) checkKey(ctx context.Context) error {
	subject := key(c.names.workers(), probe+"."+rand.Text())
	err := c.brief(ctx, "write a key", subject, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, nats.NewMsg(subject), jetstream.WithMsgTTL(5*replicaTime))
		return err
	})
	if err != nil {
		return err
	}
	for begin := time.Now(); ; {
		msg, err := c.last(ctx, bucket(c.names.workers()), subject)
		if err != nil || msg != nil {
			return err
		}
		if time.Since(begin) > replicaTime {
			return errors.New("a key that was just written is not there")
		}
		if !wait(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// checkRead reads the records as a janitor does.
func (c *Conn) checkRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	r, err := c.readRecords(ctx, 1)
	if err == nil {
		r.close()
	}
	return err
}
