package natsqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// probe is the name that checks use in place of a job's or a worker's.
const probe = "probe"

// Check uses every right that a worker needs. It returns job.ErrNotSetUp if there is no stream at all. Otherwise it joins
// one error for each right that is denied, and for each part that does not work, with its subject; a MissingError for each
// part that was not set up; and one error for a timing that the living workers of the queue do not have. It leaves no job,
// result or record behind: the writes expect a sequence that can't be, so that a server that grants the right refuses the
// write. Only one key of the workers is really written, and it expires.
func (c *Conn) Check(ctx context.Context) error {
	if !c.Connected() {
		return fmt.Errorf("%w: no connection to the NATS server at %s", job.ErrUnavailable, c.js.Where())
	}
	all := layout(c.names, c.cfg)
	absent, errs := c.checkStreams(ctx, all)
	if len(absent) == len(all) {
		return fmt.Errorf("check the queue: %w", c.js.NotSetUp())
	}
	errs = append(errs, c.checkLanes(ctx)...)
	_, err := c.streams.sched.ProbeConsumer(ctx, moverName)
	errs = append(errs, err)
	n := c.names
	for _, subject := range []string{
		n.token(job.DefaultQueue, job.PriorityNormal, probe), n.wait(probe, 0, 0), n.result(job.DefaultQueue, probe, 0),
		n.letter(job.DefaultQueue, probe, 0), n.event(probe, probe, 0), c.streams.records.Key(probe),
	} {
		errs = append(errs, c.js.ProbeWrite(ctx, subject))
	}
	// These would wait for a stream that is not there.
	if !absent[c.streams.workers.Name()] {
		errs = append(errs, c.streams.workers.Probe(ctx, probe), c.js.ProbeWrite(ctx, c.streams.workers.Key(janitorKey)))
	}
	if !absent[c.streams.records.Name()] {
		errs = append(errs, c.checkRead(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check the queue: %w", err)
	}
	return nil
}

// checkStreams tells which streams the server says are not there, and everything that is wrong.
func (c *Conn) checkStreams(ctx context.Context, all []jetstream.StreamConfig) (absent map[string]bool, errs []error) {
	absent = map[string]bool{}
	for _, s := range all {
		err := c.js.Stream(s.Name).Probe(ctx)
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
		for _, p := range priorities {
			have, err := c.streams.jobs.ProbeConsumer(ctx, laneName(q, p))
			if err == nil && timing == nil {
				timing = c.mayChangeAckWait(ctx, have.AckWait, c.cfg.Timing.AckWait)
			}
			errs = append(errs, err)
		}
	}
	return append(errs, timing)
}

// checkRead reads the records as a janitor does.
func (c *Conn) checkRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jsconn.TryTimeout)
	defer cancel()
	r, err := c.records.read(ctx, 1)
	if err == nil {
		r.Close()
	}
	return err
}
