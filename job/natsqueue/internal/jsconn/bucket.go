package jsconn

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is a key-value bucket: a stream with a subject for each key, laid out so that every NATS tool can read it.
type Bucket struct {
	Stream
	name string
}

// Bucket returns the bucket called name, which need not exist yet.
func (c *Conn) Bucket(name string) Bucket { return Bucket{Stream: c.Stream("KV_" + name), name: name} }

// Key is the subject of a key. The key > stands for all of them.
func (b Bucket) Key(k string) string { return "$KV." + b.name + "." + k }

// Get reads a key's value, nil if it has none. The sequence is that of the last message on the key's subject, also if that
// message only says that the key is gone.
func (b Bucket) Get(ctx context.Context, k string) (value []byte, seq uint64, err error) {
	msg, err := b.Last(ctx, b.Key(k))
	if err != nil || msg == nil {
		return nil, 0, err
	}
	return valueOf(msg), msg.Sequence, nil
}

// valueOf is what msg gives its key, nil if it says that the key is gone.
func valueOf(msg *jetstream.RawStreamMsg) []byte {
	if msg.Header.Get(headerOperation) != "" || msg.Header.Get(jetstream.MarkerReasonHeader) != "" {
		return nil
	}
	return msg.Data
}

// GetEach reads the values of many keys by few requests, and calls each for one key after the other, perhaps twice for one.
// It is silent about keys without a value. It keeps to the rules of Stream.LastOfEach.
func (b Bucket) GetEach(ctx context.Context, keys []string, each func(key string, value []byte)) error {
	subjects := make([]string, len(keys))
	for i, k := range keys {
		subjects[i] = b.Key(k)
	}
	return b.LastOfEach(ctx, subjects, func(msg *jetstream.RawStreamMsg) {
		if v := valueOf(msg); v != nil {
			each(msg.Subject[len(b.Key("")):], v)
		}
	})
}

// headerOperation marks a message that stands for a key's end.
const headerOperation = "KV-Operation"

// Removal is the message that removes a key.
func (b Bucket) Removal(k string) *nats.Msg {
	msg := nats.NewMsg(b.Key(k))
	msg.Header.Set(headerOperation, "DEL")
	return msg
}
