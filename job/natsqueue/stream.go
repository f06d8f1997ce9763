package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// last returns the last message of a stream on a subject, which may hold
// wildcards. It is nil if there is none. The read is a direct one: on a cluster it
// may be a moment old, so each decision that rests on it ends in a compare-and-set.
func (c *Conn) last(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	api := "$JS.API.DIRECT.GET." + stream + "." + subject
	var found *jetstream.RawStreamMsg
	err := c.retry(ctx, "read "+subject, api, func(ctx context.Context) error {
		reply, err := c.nc.RequestMsgWithContext(ctx, nats.NewMsg(api))
		if err != nil {
			return err
		}
		found, err = rawMessage(reply)
		return err
	})
	return found, err
}

// rawMessage reads the answer to a direct get.
func rawMessage(m *nats.Msg) (*jetstream.RawStreamMsg, error) {
	switch status := m.Header.Get("Status"); status {
	case "":
	case "404":
		return nil, nil
	case "408":
		return nil, errors.New("the server refused the request: " + m.Header.Get("Description"))
	default:
		return nil, fmt.Errorf("direct get: status %s: %s", status, m.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("direct get: sequence: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("direct get: time: %w", err)
	}
	return &jetstream.RawStreamMsg{Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: seq, Header: m.Header, Data: m.Data, Time: at}, nil
}

// publish stores a message, and repeats the call until the server answers.
func (c *Conn) publish(ctx context.Context, op string, msg *nats.Msg, opts ...jetstream.PublishOpt) error {
	return c.retry(ctx, op, msg.Subject, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: msg.Subject, Header: maps.Clone(msg.Header), Data: msg.Data}, opts...)
		return err
	})
}

// create stores a message as the first of its subject. ErrExists says that there
// is one already, perhaps by an earlier try of the same call.
func (c *Conn) create(ctx context.Context, op string, msg *nats.Msg) error {
	err := c.publish(ctx, op, msg, jetstream.WithExpectLastSequencePerSubject(0))
	if conflicts(err) {
		return fmt.Errorf("%s: %w", op, job.ErrExists)
	}
	return err
}

// created is create for what may be there already.
func (c *Conn) created(ctx context.Context, op string, msg *nats.Msg) error {
	if err := c.create(ctx, op, msg); !errors.Is(err, job.ErrExists) {
		return err
	}
	return nil
}

// subjects lists the subjects of a stream that match filter.
func (c *Conn) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	var found map[string]uint64
	err := c.retry(ctx, "list "+filter, "$JS.API.STREAM.INFO."+stream, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			found = info.State.Subjects
		}
		return err
	})
	return found, err
}

// deleteMsg removes one message by its sequence. That is safe beside a running
// consumer, which a purge is not. What is gone already counts as removed.
func (c *Conn) deleteMsg(ctx context.Context, stream string, seq uint64) error {
	return c.retry(ctx, "delete a message of "+stream, "$JS.API.STREAM.MSG.DELETE."+stream, func(ctx context.Context) error {
		err := c.deleteOnce(ctx, stream, seq)
		if isMissing(err) || apiCode(err) == codeNoSuchSequence {
			return nil
		}
		return err
	})
}

// codeNoSuchSequence: the message to delete is not there.
const codeNoSuchSequence = jetstream.ErrorCode(10057)

// deleteOnce asks without a look at the stream first, which would need another right.
func (c *Conn) deleteOnce(ctx context.Context, stream string, seq uint64) error {
	body := fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, seq)
	reply, err := c.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+stream, body)
	if err != nil {
		return err
	}
	return apiError(reply.Data)
}

// deleteLast removes the last message on subject, if there is one.
func (c *Conn) deleteLast(ctx context.Context, stream, subject string) error {
	msg, err := c.last(ctx, stream, subject)
	if err != nil || msg == nil {
		return err
	}
	return c.deleteMsg(ctx, stream, msg.Sequence)
}
