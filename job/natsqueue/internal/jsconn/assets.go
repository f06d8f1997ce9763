package jsconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Ensure makes the stream, or brings it to the limits and rules of want. It changes nothing that is right already, so an
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

// sameStream compares the settings that slipway makes and an operator may wish to change. The
// replicas are not compared: a worker or a doctor that was not told of them would
// take a cluster's copies away.
func sameStream(have, want jetstream.StreamConfig) bool {
	return have.MaxMsgs == want.MaxMsgs && have.MaxBytes == want.MaxBytes && have.MaxAge == want.MaxAge &&
		have.AllowDirect == want.AllowDirect && have.Retention == want.Retention &&
		have.Discard == want.Discard && have.DenyPurge == want.DenyPurge && have.AllowMsgTTL == want.AllowMsgTTL &&
		have.AllowMsgSchedules == want.AllowMsgSchedules
}

func mergeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	have.MaxMsgs, have.MaxBytes, have.MaxAge = want.MaxMsgs, want.MaxBytes, want.MaxAge
	have.AllowDirect, have.Retention, have.Discard = want.AllowDirect, want.Retention, want.Discard
	have.DenyPurge, have.AllowMsgTTL, have.AllowMsgSchedules = want.DenyPurge, want.AllowMsgTTL, want.AllowMsgSchedules
	return have
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
		return nil, fmt.Errorf("%w: run Setup first", err)
	}
	return found, err
}

// Pulls is the subject that a consumer's messages are asked for on. Denied tells whether the account may use it.
func (s Stream) Pulls(consumer string) string {
	return "$JS.API.CONSUMER.MSG.NEXT." + s.name + "." + consumer
}

// Denied returns the denial of subject, nil if the server did not deny it yet.
func (c *Conn) Denied(subject string) *PermissionError { return c.calls.denials.get(subject) }
