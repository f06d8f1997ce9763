package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// headerSubmitted is when the job was accepted first. A token of a foreign program may lack it; then the time of the
// message counts.
const headerSubmitted = "Slipway-Submitted"

// headroom is what a message needs beside the spec: subject, headers, and those of a dead letter.
const headroom = 16 << 10

// token is the message of a job, as it lies in JOBS or SCHED.
type token struct {
	id          job.ID
	queue       string
	priority    job.Priority
	spec        []byte
	submittedAt time.Time
	summary     specSummary
}

// specSummary is the part of a spec that the queue itself looks at. It is read
// leniently: the worker says whether the spec is valid.
type specSummary struct {
	Name      string            `json:"name"`
	Queue     string            `json:"queue"`
	Priority  job.Priority      `json:"priority"`
	Labels    map[string]string `json:"labels"`
	NotBefore time.Time         `json:"not_before"`
}

// tokens are the tokens of one queue.
type tokens struct {
	names       names
	js          *jsconn.Conn
	jobs, sched jsconn.Stream
}

// parse reads a message of JOBS, or one that came due.
func (ts tokens) parse(subject string, header nats.Header, data []byte, at time.Time) (token, bool) {
	queue, priority, id, ok := ts.names.parseLane(subject)
	if !ok {
		return token{}, false
	}
	t := token{id: id, queue: queue, priority: priority, spec: data, submittedAt: submitted(header, at)}
	_ = json.Unmarshal(data, &t.summary) // the parts that could be read are enough
	return t, true
}

// parseStored reads a message of any of the places. The subject of one that waits for its time names no lane; a header says
// where it will go.
func (ts tokens) parseStored(msg *jetstream.RawStreamMsg) (token, bool) {
	t, ok := ts.parse(msg.Subject, msg.Header, msg.Data, msg.Time)
	if !ok {
		t, ok = ts.parse(msg.Header.Get(jetstream.ScheduleTargetHeader), msg.Header, msg.Data, msg.Time)
	}
	return t, ok
}

func submitted(header nats.Header, at time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, header.Get(headerSubmitted)); err == nil {
		return t
	}
	return at.UTC()
}

// record is the record that a token without one stands for.
func (t token) record() *record {
	rec := &record{
		State: job.StateQueued, Generation: 1, Queue: t.queue, Priority: t.priority,
		SubmittedAt: t.submittedAt, NotBefore: t.summary.NotBefore, Spec: job.NewFingerprint(t.spec),
	}
	// Foreign programs write tokens, too: what is out of bounds must not get into the record.
	if len(t.summary.Name) <= job.MaxLabelBytes {
		rec.Name = t.summary.Name
	}
	if labels, err := json.Marshal(t.summary.Labels); err == nil && len(labels) <= job.MaxLabels*2*job.MaxLabelBytes {
		rec.Labels = t.summary.Labels
	}
	return rec
}

// message makes the token's message for JOBS.
func (ts tokens) message(t token) *nats.Msg {
	msg := nats.NewMsg(ts.names.token(t.queue, t.priority, t.id))
	msg.Data = t.spec
	msg.Header.Set(headerSubmitted, t.submittedAt.UTC().Format(time.RFC3339Nano))
	return msg
}

// schedule makes the token's message for SCHED, which comes due at the time at.
// The library's own option rounds down to a second, which would be early.
func (ts tokens) schedule(t token, gen int, n uint64, at time.Time) *nats.Msg {
	msg := ts.message(t)
	msg.Subject = ts.names.wait(t.id, gen, n)
	msg.Header.Set(jetstream.ScheduleHeader, "@at "+at.UTC().Format(time.RFC3339Nano))
	msg.Header.Set(jetstream.ScheduleTargetHeader, ts.names.due(t.queue, t.priority, t.id))
	return msg
}

// put writes t into JOBS, also beside another token of the job: that one may be the last attempt's or generation's, about
// to be acknowledged. A second token is harmless; a job without one would be stuck.
func (ts tokens) put(ctx context.Context, t token) error {
	const op = "put the job into its queue"
	msg := ts.message(t)
	err := ts.js.CreateFirst(ctx, op, msg)
	if errors.Is(err, job.ErrExists) {
		err = ts.js.Publish(ctx, op, msg, jetstream.WithMsgID(messageID(msg, time.Now())))
	}
	return err
}

// messageID keeps the repeated tries of one call from making a token each.
func messageID(msg *nats.Msg, at time.Time) string {
	return fmt.Sprintf("%s %d", msg.Subject, at.UnixNano())
}

// find looks for the token of a job. The state is queued or scheduled, and empty if there is no token.
func (ts tokens) find(ctx context.Context, id job.ID) (token, job.State, error) {
	places := ts.places(id)
	// JOBS once more: a token that came due between the looks has moved there.
	for _, place := range append(places[:], places[0]) {
		msg, err := place.stream.Last(ctx, place.subject)
		if err != nil {
			return token{}, "", err
		}
		if msg == nil {
			continue
		}
		if t, ok := ts.parseStored(msg); ok {
			return t, place.state, nil
		}
	}
	return token{}, "", nil
}

// remove deletes the tokens of a job that is decided. It is a courtesy: a worker that meets a token which stayed drops it.
func (ts tokens) remove(ctx context.Context, id job.ID) error {
	for _, place := range ts.places(id) {
		if err := place.stream.DeleteLast(ctx, place.subject); err != nil {
			return fmt.Errorf("remove the token of job %s: %w", id, err)
		}
	}
	return nil
}

// place is where tokens of one job may lie, and the state that one there stands for.
type place struct {
	stream  jsconn.Stream
	subject string
	state   job.State
}

// places are in the order in which a look misses no token but one that moves on to JOBS.
func (ts tokens) places(id job.ID) [3]place {
	return [3]place{
		{ts.jobs, ts.names.anyToken(id), job.StateQueued},
		{ts.sched, ts.names.anyWait(id), job.StateScheduled},
		{ts.sched, ts.names.anyDue(id), job.StateQueued},
	}
}

// all lists the jobs that have a token.
func (ts tokens) all(ctx context.Context) (map[job.ID]bool, error) {
	found := map[job.ID]bool{}
	for _, place := range []struct {
		stream jsconn.Stream
		filter string
	}{{ts.jobs, ".J.>"}, {ts.sched, ".D.>"}} {
		subjects, err := place.stream.Subjects(ctx, string(ts.names)+place.filter)
		if err != nil {
			return nil, err
		}
		for s := range subjects {
			for part := range strings.SplitSeq(s, ".") {
				found[job.ID(part)] = true
			}
		}
	}
	return found, nil
}
