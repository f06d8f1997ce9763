package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// headerSubmitted is when the job was accepted first. A token that was written by
// other means has none; then the time of the message counts.
const headerSubmitted = "Slipway-Submitted"

// headroom is what a message needs beside the spec: subject, headers, and those of a dead letter.
const headroom = 16 << 10

// token is the message of a job, as it lies in JOBS or SCHED.
type token struct {
	id          job.ID
	queue       string
	class       job.Priority
	spec        []byte
	submittedAt time.Time
	brief       brief
}

// brief is the little of a spec that the queue itself looks at. It is read
// leniently: whether the spec is valid is for the worker to say.
type brief struct {
	Name      string            `json:"name"`
	Queue     string            `json:"queue"`
	Priority  job.Priority      `json:"priority"`
	Labels    map[string]string `json:"labels"`
	NotBefore time.Time         `json:"not_before"`
}

// newToken reads a message of JOBS, or one that came due.
func (c *Conn) newToken(subject string, header nats.Header, data []byte, at time.Time) (token, bool) {
	queue, class, id, ok := c.names.parseLane(subject)
	if !ok {
		return token{}, false
	}
	t := token{id: id, queue: queue, class: class, spec: data, submittedAt: submitted(header, at)}
	_ = json.Unmarshal(data, &t.brief) // what could be read is enough
	return t, true
}

func submitted(header nats.Header, at time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, header.Get(headerSubmitted)); err == nil {
		return t
	}
	return at.UTC()
}

// record is what a token without one stands for.
func (t token) record() *record {
	rec := &record{
		State: job.StateQueued, Generation: 1, Queue: t.queue, Class: t.class,
		SubmittedAt: t.submittedAt, NotBefore: t.brief.NotBefore,
	}
	// Nothing that is out of bounds may end up in the record, whoever wrote the token.
	if len(t.brief.Name) <= job.MaxLabelBytes {
		rec.Name = t.brief.Name
	}
	if labels, err := json.Marshal(t.brief.Labels); err == nil && len(labels) <= job.MaxLabels*2*job.MaxLabelBytes {
		rec.Labels = t.brief.Labels
	}
	return rec
}

// message makes the token's message for JOBS.
func (c *Conn) message(t token) *nats.Msg {
	msg := nats.NewMsg(c.names.token(t.queue, t.class, t.id))
	msg.Data = t.spec
	msg.Header.Set(headerSubmitted, t.submittedAt.UTC().Format(time.RFC3339Nano))
	return msg
}

// schedule makes the token's message for SCHED, which comes due at the time at.
// The library's own option rounds down to a second, which would be early.
func (c *Conn) schedule(t token, gen int, n uint64, at time.Time) *nats.Msg {
	msg := c.message(t)
	msg.Subject = c.names.wait(t.id, gen, n)
	msg.Header.Set(jetstream.ScheduleHeader, "@at "+at.UTC().Add(time.Millisecond).Format(time.RFC3339Nano))
	msg.Header.Set(jetstream.ScheduleTargetHeader, c.names.due(t.queue, t.class, t.id))
	return msg
}

// find looks for the token of a job. State is queued or scheduled, empty if there is none.
func (c *Conn) find(ctx context.Context, id job.ID) (token, job.State, error) {
	for _, place := range []struct {
		stream, subject string
		state           job.State
	}{
		{c.names.jobs(), c.names.anyToken(id), job.StateQueued},
		{c.names.sched(), c.names.anyDue(id), job.StateQueued},
		{c.names.sched(), c.names.anyWait(id), job.StateScheduled},
		// Once more, since it may have moved from there to here between the two looks.
		{c.names.jobs(), c.names.anyToken(id), job.StateQueued},
	} {
		msg, err := c.last(ctx, place.stream, place.subject)
		if err != nil {
			return token{}, "", err
		}
		if msg == nil {
			continue
		}
		subject := msg.Subject
		if place.state == job.StateScheduled {
			subject = msg.Header.Get(jetstream.ScheduleTargetHeader)
		}
		if t, ok := c.newToken(subject, msg.Header, msg.Data, msg.Time); ok {
			return t, place.state, nil
		}
	}
	return token{}, "", nil
}

// removeTokens deletes what stands for a job that is decided. It is a courtesy:
// a token that stays is met by a worker, which drops it.
func (c *Conn) removeTokens(ctx context.Context, id job.ID) error {
	for stream, subjects := range map[string][]string{
		c.names.jobs():  {c.names.anyToken(id)},
		c.names.sched(): {c.names.anyWait(id), c.names.anyDue(id)},
	} {
		for _, s := range subjects {
			if err := c.deleteLast(ctx, stream, s); err != nil {
				return fmt.Errorf("remove the token of job %s: %w", id, err)
			}
		}
	}
	return nil
}

// apiError reads the error of an answer of the JetStream API, if it holds one.
func apiError(data []byte) error {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
