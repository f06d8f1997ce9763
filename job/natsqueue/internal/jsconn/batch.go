package jsconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// batchFilters is how many filters one request holds. The server answers with at most 1024 messages, and a filter with
	// wildcards may match several.
	batchFilters = 512
	// batchBytes is about how many bytes one answer holds; the rest is asked for again. It is far below what the client
	// library keeps of messages that were not read yet.
	batchBytes = 4 << 20
)

// errNoBatch: the server does not answer this request as a batch. What the request asks for can be read one by one.
var errNoBatch = errors.New("no answer as a batch")

// LastOfEach reads the last message of every subject that matches one of filters, many by one request. It calls each with
// one message after the other, in no order that matters. Each may be called twice for a subject: a request is repeated until
// it is answered, and a message that is replaced meanwhile comes again. The reads are direct ones, as those of Last.
//
// Where an account may only read subject by subject, or the server refuses the batch, the messages are read one by one; a
// filter that matches several subjects then yields the last message of them all.
func (s Stream) LastOfEach(ctx context.Context, filters []string, each func(*jetstream.RawStreamMsg)) error {
	for part := range slices.Chunk(filters, batchFilters) {
		var err error
		if s.c.Denied(directGet+s.name) == nil {
			err = s.readBatch(ctx, part, each)
		} else {
			err = errNoBatch
		}
		if _, denied := errors.AsType[*PermissionError](err); denied || errors.Is(err, errNoBatch) {
			err = s.readSingly(ctx, part, each)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batchRequest is a direct get of many messages, as the server's API has it.
type batchRequest struct {
	MultiLast []string `json:"multi_last"`
	Seq       uint64   `json:"seq,omitempty"` // the first that is wanted
	MaxBytes  int      `json:"max_bytes"`
}

func (s Stream) readBatch(ctx context.Context, filters []string, each func(*jetstream.RawStreamMsg)) error {
	api := directGet + s.name
	for from := uint64(0); ; {
		body, err := json.Marshal(batchRequest{MultiLast: filters, Seq: from, MaxBytes: batchBytes})
		if err != nil {
			return err
		}
		var last, left uint64
		err = s.c.calls.call(ctx, "read a batch of "+s.name, api, func(ctx context.Context) (err error) {
			last, left, err = s.batch(ctx, &nats.Msg{Subject: api, Data: body}, each)
			return err
		})
		if err != nil || left == 0 {
			return err
		}
		from = last + 1
	}
}

// batch makes one request and reads its answer. It returns the sequence of the last message, and how many are left.
func (s Stream) batch(ctx context.Context, request *nats.Msg, each func(*jetstream.RawStreamMsg)) (last, left uint64, err error) {
	request.Reply = s.c.core.NewInbox()
	sub, err := s.c.core.SubscribeSync(request.Reply)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := s.c.core.PublishMsg(request); err != nil {
		return 0, 0, err
	}
	for {
		reply, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, 0, err
		}
		switch status := reply.Header.Get("Status"); status {
		case "":
		case "204":
			if left, err = strconv.ParseUint(reply.Header.Get(headerPending), 10, 64); err != nil {
				err = fmt.Errorf("%w: end of the batch: %w", errUnreadable, err)
			}
			return last, left, err
		case "503":
			return 0, 0, nats.ErrNoResponders
		default:
			if last == 0 && reply.Header.Get("Description") == noResults {
				return 0, 0, nil
			}
			return 0, 0, fmt.Errorf("%w: status %s: %s", errNoBatch, status, reply.Header.Get("Description"))
		}
		msg, err := rawMessage(reply)
		if err != nil {
			return 0, 0, err
		}
		last = msg.Sequence
		each(msg)
	}
}

const (
	// headerPending is how many messages of a batch are left.
	headerPending = "Nats-Num-Pending"
	// noResults tells a batch without messages from one that holds a message which can't be read: both have status 404.
	noResults = "No Results"
)

func (s Stream) readSingly(ctx context.Context, filters []string, each func(*jetstream.RawStreamMsg)) error {
	for _, f := range filters {
		msg, err := s.Last(ctx, f)
		if err != nil {
			return err
		}
		if msg != nil {
			each(msg)
		}
	}
	return nil
}
