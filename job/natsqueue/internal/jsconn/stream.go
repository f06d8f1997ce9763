package jsconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Subjects of the server's API, each completed by the name of a stream.
const (
	streamInfo    = "$JS.API.STREAM.INFO."
	directGet     = "$JS.API.DIRECT.GET."
	messageDelete = "$JS.API.STREAM.MSG.DELETE."
	consumerInfo  = "$JS.API.CONSUMER.INFO."
	consumerList  = "$JS.API.CONSUMER.LIST."
)

// Stream is one stream of the server. Its methods are safe for concurrent use.
type Stream struct {
	c    *Conn
	name string
}

// Stream returns the stream called name, which need not exist yet.
func (c *Conn) Stream(name string) Stream { return Stream{c: c, name: name} }

// Name is the stream's name on the server.
func (s Stream) Name() string { return s.name }

// Last returns the last message on a subject, which may hold wildcards. It is nil if there is none. The read is a direct
// one: on a cluster it may be a moment old, so each decision that rests on it ends in a compare-and-set.
func (s Stream) Last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return s.get(ctx, subject, directGet+s.name+"."+subject, nil)
}

// NextFrom returns the first message at or after a sequence whose subject matches filter, nil if there is none.
func (s Stream) NextFrom(ctx context.Context, seq uint64, filter string) (*jetstream.RawStreamMsg, error) {
	return s.get(ctx, filter, directGet+s.name, fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q}`, seq, filter))
}

func (s Stream) get(ctx context.Context, what, api string, body []byte) (*jetstream.RawStreamMsg, error) {
	var found *jetstream.RawStreamMsg
	err := s.c.calls.call(ctx, "read "+what, api, func(ctx context.Context) error {
		reply, err := s.c.core.RequestMsgWithContext(ctx, &nats.Msg{Subject: api, Data: body})
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
	default:
		return nil, fmt.Errorf("%w: status %s: %s", errRefused, status, m.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: sequence: %w", errUnreadable, err)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("%w: time: %w", errUnreadable, err)
	}
	return &jetstream.RawStreamMsg{Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: seq, Header: m.Header, Data: m.Data, Time: at}, nil
}

// Subjects lists the subjects that match filter, with the number of messages on each.
func (s Stream) Subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	var found map[string]uint64
	err := s.c.calls.call(ctx, "list "+filter, streamInfo+s.name, func(ctx context.Context) error {
		stream, err := s.c.js.Stream(ctx, s.name)
		if err != nil {
			return err
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			found = info.State.Subjects
		}
		return err
	})
	return found, err
}

// Info describes the stream.
func (s Stream) Info(ctx context.Context) (*jetstream.StreamInfo, error) {
	var info *jetstream.StreamInfo
	err := s.c.calls.call(ctx, "look at stream "+s.name, streamInfo+s.name, func(ctx context.Context) error {
		stream, err := s.c.js.Stream(ctx, s.name)
		if err == nil {
			info = stream.CachedInfo()
		}
		return err
	})
	return info, err
}

// Look is Info by a single try. It returns nil for a stream that is not there or that the account may not look at. Once it
// was denied it asks no more: each denial counts as an error.
func (s Stream) Look(ctx context.Context) (*jetstream.StreamInfo, error) {
	if s.c.Denied(streamInfo+s.name) != nil {
		return nil, nil
	}
	var info *jetstream.StreamInfo
	err := s.c.calls.tryOnce(ctx, streamInfo+s.name, func(ctx context.Context) error {
		stream, err := s.c.js.Stream(ctx, s.name)
		if err == nil {
			info = stream.CachedInfo()
		}
		return err
	})
	if _, denied := errors.AsType[*PermissionError](err); denied || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", s.name, err)
	}
	return info, nil
}

// ConsumerInfo describes one consumer of the stream.
func (s Stream) ConsumerInfo(ctx context.Context, name string) (*jetstream.ConsumerInfo, error) {
	var info *jetstream.ConsumerInfo
	err := s.c.calls.call(ctx, "look at consumer "+name, consumerInfo+s.name+"."+name, func(ctx context.Context) error {
		cons, err := s.c.js.Consumer(ctx, s.name, name)
		if err == nil {
			info = cons.CachedInfo()
		}
		return err
	})
	return info, err
}

// Consumers describes all consumers of the stream, by name. Once it was denied it asks no more: each denial counts as an
// error, and metrics ask often. The map is never nil.
func (s Stream) Consumers(ctx context.Context) (map[string]*jetstream.ConsumerInfo, error) {
	found := map[string]*jetstream.ConsumerInfo{}
	if denied := s.c.Denied(consumerList + s.name); denied != nil {
		return found, denied
	}
	err := s.c.calls.call(ctx, "list the consumers of "+s.name, consumerList+s.name, func(ctx context.Context) error {
		stream, err := s.c.js.Stream(ctx, s.name)
		if err != nil {
			return err
		}
		all := stream.ListConsumers(ctx)
		for info := range all.Info() {
			found[info.Name] = info
		}
		return all.Err()
	})
	return found, err
}

// Delete removes one message by its sequence. That is safe beside a running consumer, which a purge is not. A message that
// is gone already counts as removed.
func (s Stream) Delete(ctx context.Context, seq uint64) error {
	return s.c.calls.call(ctx, "delete a message of "+s.name, messageDelete+s.name, func(ctx context.Context) error {
		// Without a look at the stream first, which would need another right.
		reply, err := s.c.core.RequestWithContext(ctx, messageDelete+s.name, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, seq))
		if err != nil {
			return err
		}
		if err := apiError(reply.Data); !isMissing(err) {
			return err
		}
		return nil
	})
}

// DeleteLast removes the last message on subject, if there is one.
func (s Stream) DeleteLast(ctx context.Context, subject string) error {
	msg, err := s.Last(ctx, subject)
	if err != nil || msg == nil {
		return err
	}
	return s.Delete(ctx, msg.Sequence)
}
