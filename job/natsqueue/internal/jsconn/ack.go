package jsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The three answers about a message in hand. Each is sent as a request, since the server replies to it; a plain message
// gives no sign when it is lost. Each is sent by subject, not by the library's message: that refuses a second answer, and
// here every answer may be repeated.

// Ack removes the message.
func (c *Conn) Ack(ctx context.Context, msg jetstream.Msg) error {
	return c.answerToken(ctx, "acknowledge", msg, "+ACK")
}

// Nak puts the message back, to be handed out after delay. It always names a delay: the server stores when a delay ends, but
// keeps in memory alone that a message without one is to be handed out. A job that was given back while the server stopped
// came after AckWait.
func (c *Conn) Nak(ctx context.Context, msg jetstream.Msg, delay time.Duration) error {
	return c.answerToken(ctx, "give back", msg, fmt.Sprintf(`-NAK {"delay": %d}`, max(1, delay.Nanoseconds())))
}

func (c *Conn) answerToken(ctx context.Context, op string, msg jetstream.Msg, answer string) error {
	return c.calls.call(ctx, op, msg.Reply(), func(ctx context.Context) error {
		_, err := c.core.RequestWithContext(ctx, msg.Reply(), []byte(answer))
		return err
	})
}

// Progress renews AckWait. It is a single try: the caller has a clock of its own.
func (c *Conn) Progress(ctx context.Context, msg jetstream.Msg) error {
	return c.calls.tryOnce(ctx, msg.Reply(), func(ctx context.Context) error {
		_, err := c.core.RequestWithContext(ctx, msg.Reply(), []byte("+WPI"))
		return err
	})
}
