package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/size"
	"slipway/job/natsqueue/internal/jsconn"
)

// Limit is a limit of a stream that is not as the Config says.
type Limit struct {
	// Stream is its name on the server.
	Stream string
	// Setting is the field of Config.
	Setting string
	// Have and Want are the limit of the stream and that of the Config, for people.
	Have, Want string
	// Loses says that Want is smaller, so that SetLimits deletes what no longer fits of events and results, and has new jobs,
	// dead letters or records refused until there is room.
	Loses bool
}

// String describes l in one line.
func (l Limit) String() string {
	return fmt.Sprintf("%s of stream %s is %s, and the settings say %s", l.Setting, l.Stream, l.Have, l.Want)
}

// Limits returns the limits of the streams that are not as the Config says, and nothing of streams that don't exist. It
// returns job.ErrNotSetUp if none does. Setup makes streams with the Config's limits, and leaves those of a stream that
// exists alone: another worker, or an operator, may have chosen them.
func (c *Conn) Limits(ctx context.Context) ([]Limit, error) {
	var found []Limit
	err := c.eachLimited(ctx, func(want, have jetstream.StreamConfig) error {
		found = append(found, compareLimits(c.names, have, want)...)
		return nil
	})
	return found, err
}

// SetLimits brings the streams that exist to the Config's limits; job.ErrNotSetUp says that none does. A smaller limit deletes the oldest events and results that no longer
// fit; no job that waits or runs, no dead letter and no record is dropped.
func (c *Conn) SetLimits(ctx context.Context) error {
	return c.eachLimited(ctx, func(want, have jetstream.StreamConfig) error {
		if len(compareLimits(c.names, have, want)) == 0 {
			return nil
		}
		return c.js.Stream(want.Name).SetLimits(ctx, want)
	})
}

// eachLimited calls do for each stream whose limits are settings. It passes over those that are not there, and returns
// job.ErrNotSetUp if none is.
func (c *Conn) eachLimited(ctx context.Context, do func(want, have jetstream.StreamConfig) error) error {
	fault := c.js.NotSetUp()
	for _, want := range layout(c.names, c.cfg) {
		if limitSettings(c.names, want.Name) == [3]string{} {
			continue
		}
		s := c.js.Stream(want.Name)
		// Info alone would wait for a stream that is missing beside others.
		if _, missing := errors.AsType[*MissingError](s.Probe(ctx)); missing {
			continue
		}
		have, err := s.Info(ctx)
		if err == nil {
			err = do(want, have.Config)
		}
		if err != nil {
			return fmt.Errorf("limits of the queue: %w", err)
		}
		fault = nil
	}
	if fault != nil {
		return fmt.Errorf("limits of the queue: %w", fault)
	}
	return nil
}

// limitSettings are the fields of Config that bound a stream: its messages, their bytes, their age. Empty: no setting does.
func limitSettings(n names, stream string) [3]string {
	switch stream {
	case n.jobs():
		return [3]string{"MaxJobs", "MaxJobBytes", ""}
	case n.sched(), "KV_" + n.workers(): // the second reserves the room of the first
		return [3]string{"", "MaxScheduledBytes", ""}
	case n.results():
		return [3]string{"", "ResultsBytes", "ResultsAge"}
	case n.dead():
		return [3]string{"", "DeadBytes", ""}
	case "KV_" + n.records():
		return [3]string{"", "RecordsBytes", ""}
	case n.events():
		return [3]string{"", "EventsBytes", "EventsAge"}
	}
	return [3]string{}
}

func compareLimits(n names, have, want jetstream.StreamConfig) []Limit {
	var found []Limit
	settings := limitSettings(n, want.Name)
	for i, row := range []struct {
		have, want int64
		show       func(int64) string
	}{
		{have.MaxMsgs, want.MaxMsgs, func(n int64) string { return strconv.FormatInt(n-floorMsgs, 10) }},
		{jsconn.MaxBytes(have), jsconn.MaxBytes(want), size.Format},
		{int64(have.MaxAge), int64(want.MaxAge), func(n int64) string { return time.Duration(n).String() }},
	} {
		if settings[i] == "" || row.have == row.want {
			continue
		}
		l := Limit{Stream: want.Name, Setting: settings[i], Have: row.show(row.have), Want: row.show(row.want)}
		if row.have <= 0 { // the server's word for no limit
			l.Have = "unlimited"
		}
		l.Loses = row.have <= 0 || row.want < row.have
		found = append(found, l)
	}
	return found
}
