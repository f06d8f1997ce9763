package jsconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
)

// Ensure makes the stream, or brings it to the rules of want. The limits of a stream that exists stay as they are: a
// smaller one deletes what no longer fits, and whoever set them knows why. It changes nothing that is right already, so an
// account without the right to create can call it. Any number of callers may do so at once.
func (s Stream) Ensure(ctx context.Context, want jetstream.StreamConfig) error {
	op, js, retry := "set up stream "+s.name, s.c.js, s.c.calls.callDuringSetup
	var have *jetstream.StreamInfo
	err := retry(ctx, op, streamInfo+s.name, func(ctx context.Context) error {
		stream, err := js.Stream(ctx, s.name)
		if err == nil {
			have = stream.CachedInfo()
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
	if err != nil || (have != nil && sameStream(have.Config, want)) {
		return noJetStream(err)
	}
	if have != nil {
		want = mergeStream(have.Config, want) // settings that are not slipway's stay
		return retry(ctx, op, "$JS.API.STREAM.UPDATE."+s.name, func(ctx context.Context) error {
			_, err := js.UpdateStream(ctx, want)
			return err
		})
	}
	return retry(ctx, op, "$JS.API.STREAM.CREATE."+s.name, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // somebody else was faster
		}
		return err
	})
}

// sameStream compares the rules that the protocol rests on. Neither limits nor replicas are compared: a worker that was not
// told of them would take a cluster's copies away, or an operator's messages.
func sameStream(have, want jetstream.StreamConfig) bool {
	unlimited := have.MaxBytes <= 0 && have.MaxMsgs <= 0 // then nothing is discarded, either way
	return have.AllowDirect == want.AllowDirect && have.Retention == want.Retention &&
		(unlimited || have.Discard == want.Discard) && have.DenyPurge == want.DenyPurge && have.AllowMsgTTL == want.AllowMsgTTL &&
		have.AllowMsgSchedules == want.AllowMsgSchedules
}

func mergeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	have.AllowDirect, have.Retention, have.Discard = want.AllowDirect, want.Retention, want.Discard
	have.DenyPurge, have.AllowMsgTTL, have.AllowMsgSchedules = want.DenyPurge, want.AllowMsgTTL, want.AllowMsgSchedules
	return have
}

// SoftLimit is the metadata of a stream that says how many bytes it should have at most. Those who write to it keep to it,
// since the server itself would drop the oldest messages.
const SoftLimit = "slipway-max-bytes"

// MaxBytes is how many bytes a stream may have, 0 or less for no limit: by the server's limit or by SoftLimit.
func MaxBytes(cfg jetstream.StreamConfig) int64 {
	if soft, err := strconv.ParseInt(cfg.Metadata[SoftLimit], 10, 64); err == nil {
		return soft
	}
	return cfg.MaxBytes
}

// SetLimits brings the stream, which exists, to the limits of want.
func (s Stream) SetLimits(ctx context.Context, want jetstream.StreamConfig) error {
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	cfg := info.Config
	cfg.MaxMsgs, cfg.MaxBytes, cfg.MaxAge, cfg.Discard = want.MaxMsgs, want.MaxBytes, want.MaxAge, want.Discard
	if most := want.Metadata[SoftLimit]; most != "" {
		cfg.Metadata = maps.Clone(cfg.Metadata)
		if cfg.Metadata == nil {
			cfg.Metadata = map[string]string{}
		}
		cfg.Metadata[SoftLimit] = most
	}
	return s.c.calls.call(ctx, "set the limits of stream "+s.name, "$JS.API.STREAM.UPDATE."+s.name, func(ctx context.Context) error {
		_, err := s.c.js.UpdateStream(ctx, cfg)
		return err
	})
}

// EnsureConsumer returns the wanted consumer. It looks for an existing one first: a worker needs no right to make one. It
// asks mayChange before it gives an existing consumer another AckWait; an error stops the change. duringSetup says that the
// streams are being made, so that a missing one is expected.
func (s Stream) EnsureConsumer(ctx context.Context, want jetstream.ConsumerConfig, mayChange func(ctx context.Context, have, want time.Duration) error, duringSetup bool) (jetstream.Consumer, error) {
	var retry retrier = s.c.calls.call
	if duringSetup {
		retry = s.c.calls.callDuringSetup
	}
	op := "set up consumer " + want.Durable + " of " + s.name
	have, err := s.findConsumer(ctx, retry, op, want.Durable)
	if err != nil {
		return nil, err
	}
	if have != nil {
		cfg := have.CachedInfo().Config
		if cfg.AckWait == want.AckWait && cfg.MaxDeliver == want.MaxDeliver && len(cfg.BackOff) == 0 {
			return have, nil
		}
		if err := mayChange(ctx, cfg.AckWait, want.AckWait); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	var made jetstream.Consumer
	subject := fmt.Sprintf("$JS.API.CONSUMER.CREATE.%s.%s.%s", s.name, want.Durable, want.FilterSubject)
	err = retry(ctx, op, subject, func(ctx context.Context) (err error) {
		made, err = s.c.js.CreateOrUpdateConsumer(ctx, s.name, want)
		return err
	})
	return made, err
}

// findConsumer returns nil if there is no such consumer.
func (s Stream) findConsumer(ctx context.Context, retry retrier, op, name string) (jetstream.Consumer, error) {
	var found jetstream.Consumer
	err := retry(ctx, op, consumerInfo+s.name+"."+name, func(ctx context.Context) (err error) {
		found, err = s.c.js.Consumer(ctx, s.name, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			found = nil
			return nil
		}
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, hint.With(err, "run Setup first")
	}
	return found, err
}

// Pulls is the subject that a consumer's messages are asked for on. Denied tells whether the account may use it.
func (s Stream) Pulls(consumer string) string {
	return "$JS.API.CONSUMER.MSG.NEXT." + s.name + "." + consumer
}

// Denied returns the denial of subject, nil if the server did not deny it yet.
func (c *Conn) Denied(subject string) *PermissionError { return c.calls.denials.get(subject) }
