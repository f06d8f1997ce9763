package natsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// QueueDepth is how much lies in one lane: the jobs of one priority in one queue.
type QueueDepth struct {
	Queue    string
	Priority job.Priority
	// Waiting is how many jobs wait for a worker.
	Waiting uint64
	// InFlight is how many run, or wait for the end of a retry's delay.
	InFlight int
	// OldestAge is how long the oldest of the waiting jobs has waited. Zero if none waits.
	OldestAge time.Duration
}

// Depth returns the depth of each lane of Config.Queues, and then of every other lane that holds jobs, by name: of queues
// that other workers serve, and of those that none ever served. Jobs of the latter are seen at the second call that finds
// them, and then looked for once a minute, since the server has to list all jobs for that. Jobs that wait for their
// not_before are in no lane.
//
// An account that may not list the consumers of the stream is told of Config.Queues alone.
func (c *Conn) Depth(ctx context.Context) ([]QueueDepth, error) {
	lanes, err := c.streams.jobs.Consumers(ctx)
	_, denied := errors.AsType[*PermissionError](err)
	if err != nil && !denied {
		return nil, fmt.Errorf("depth of the queues: %w", err)
	}
	var all []QueueDepth
	for _, q := range c.cfg.Queues {
		for _, p := range priorities {
			name := laneName(q, p)
			if lanes[name] == nil {
				if lanes[name], err = c.streams.jobs.ConsumerInfo(ctx, name); err != nil {
					return nil, fmt.Errorf("depth of queue %s: %w", q, err)
				}
			}
			d, err := c.depth(ctx, q, p, lanes[name])
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	if denied {
		return all, nil
	}
	others, err := c.otherDepths(ctx, lanes)
	return append(all, others...), err
}

// otherDepths are those of the lanes that hold jobs, but are none of Config.Queues.
func (c *Conn) otherDepths(ctx context.Context, lanes map[string]*jetstream.ConsumerInfo) ([]QueueDepth, error) {
	var all []QueueDepth
	for _, name := range slices.Sorted(maps.Keys(lanes)) {
		queue, priority, ok := strings.Cut(name, "_")
		if info := lanes[name]; !ok || slices.Contains(c.cfg.Queues, queue) || info.NumPending+uint64(info.NumAckPending) == 0 {
			continue
		}
		d, err := c.depth(ctx, queue, job.Priority(priority), lanes[name])
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	strays, err := c.strays.find(ctx, c, lanes)
	return append(all, strays...), err
}

func (c *Conn) depth(ctx context.Context, queue string, priority job.Priority, info *jetstream.ConsumerInfo) (QueueDepth, error) {
	d := QueueDepth{Queue: queue, Priority: priority, Waiting: info.NumPending, InFlight: info.NumAckPending}
	var err error
	if d.Waiting > 0 { // the oldest waiting message is the next one after the last that was delivered
		d.OldestAge, err = c.age(ctx, info.Delivered.Stream+1, queue, priority)
	}
	return d, err
}

// age is how long the first job of a lane at or after a sequence has waited.
func (c *Conn) age(ctx context.Context, from uint64, queue string, priority job.Priority) (time.Duration, error) {
	oldest, err := c.streams.jobs.NextFrom(ctx, from, c.names.lane(queue, priority))
	if err != nil || oldest == nil {
		return 0, err
	}
	return max(0, time.Since(submitted(oldest.Header, oldest.Time))), nil
}

// straysEvery is how often jobs without a consumer are looked for, as long as there are some.
const straysEvery = time.Minute

// strays are the jobs in lanes that have no consumer: of a queue that no worker ever served, or, from a foreign program, of
// a priority that there is none of. Nothing else would show that they wait.
type strays struct {
	mu      sync.Mutex
	noticed bool // at the last look there were more messages than the consumers know; a message on its way may be one
	at      time.Time
	lanes   map[[2]string]uint64 // queue and priority, with the number of jobs, at that time
}

// find counts the messages that no consumer has. Only if there are some, at two calls in a row, it lists all messages.
func (s *strays) find(ctx context.Context, c *Conn, lanes map[string]*jetstream.ConsumerInfo) ([]QueueDepth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := c.streams.jobs.Info(ctx)
	if err != nil {
		return nil, err
	}
	known := uint64(floorMsgs)
	for _, lane := range lanes {
		known += lane.NumPending + uint64(lane.NumAckPending)
	}
	before := s.noticed
	if s.noticed = info.State.Msgs > known; !s.noticed || !before {
		return nil, nil
	}
	if time.Since(s.at) > straysEvery {
		if err := s.list(ctx, c, lanes); err != nil {
			return nil, err
		}
	}
	var all []QueueDepth
	for lane, n := range s.lanes {
		if lanes[laneName(lane[0], job.Priority(lane[1]))] != nil {
			continue // a worker began to serve it since
		}
		d := QueueDepth{Queue: lane[0], Priority: job.Priority(lane[1]), Waiting: n}
		if d.OldestAge, err = c.age(ctx, 1, d.Queue, d.Priority); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b QueueDepth) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Priority, b.Priority))
	})
	return all, nil
}

func (s *strays) list(ctx context.Context, c *Conn, lanes map[string]*jetstream.ConsumerInfo) error {
	subjects, err := c.streams.jobs.Subjects(ctx, string(c.names)+".J.>")
	if err != nil {
		return err
	}
	s.at, s.lanes = time.Now(), map[[2]string]uint64{}
	for subject, n := range subjects {
		queue, priority, _, ok := c.names.parseLane(subject)
		if ok && subject != c.names.floor() && lanes[laneName(queue, priority)] == nil {
			s.lanes[[2]string{queue, string(priority)}] += n
		}
	}
	return nil
}
