package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The three words that are said about a token. Each is sent as a request, since
// the server answers it, and a plain one gives no sign of being lost. They are
// sent by subject, not by the library's message: that refuses a second word, and
// here every word may be repeated.

// ack removes the token.
func (c *Conn) ack(ctx context.Context, msg jetstream.Msg) error {
	return c.say(ctx, "acknowledge", msg, "+ACK")
}

// nak puts the token back, to be handed out after delay.
func (c *Conn) nak(ctx context.Context, msg jetstream.Msg, delay time.Duration) error {
	word := "-NAK"
	if delay > 0 {
		word = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	return c.say(ctx, "give back", msg, word)
}

func (c *Conn) say(ctx context.Context, op string, msg jetstream.Msg, word string) error {
	return c.retry(ctx, op, msg.Reply(), func(ctx context.Context) error {
		_, err := c.nc.RequestWithContext(ctx, msg.Reply(), []byte(word))
		return err
	})
}

// progress renews AckWait. It is tried once: the caller has a clock of its own.
func (c *Conn) progress(ctx context.Context, msg jetstream.Msg) error {
	return c.once(ctx, msg.Reply(), func(ctx context.Context) error {
		_, err := c.nc.RequestWithContext(ctx, msg.Reply(), []byte("+WPI"))
		return err
	})
}
