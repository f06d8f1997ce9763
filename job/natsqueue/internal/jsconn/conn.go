package jsconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/job"
)

// Options says where the server is, and which streams are expected on it.
type Options struct {
	// URL is the server's, or several separated by commas. Required without InProcess.
	URL string
	// The files are optional. The caller has checked that they can be read, and that CertFile and KeyFile go together.
	CredsFile, NkeyFile, CAFile, CertFile, KeyFile string
	// TLSFirst begins with TLS, before the server's first words.
	TLSFirst bool
	// Name is what the server shows for this connection.
	Name string
	// InboxPrefix is where replies go. Empty means _INBOX.
	InboxPrefix string
	// InProcess connects to an embedded server without a port, in place of URL.
	InProcess interface{ InProcessConn() (net.Conn, error) }

	// Prefix is the beginning of all the streams' names. Errors name it.
	Prefix string
	// Streams are all streams of the prefix, in the order in which they are made.
	Streams []StreamName
	// OnError is called with what goes wrong in the background. It must not block. Required.
	OnError func(error)
}

// StreamName tells the messages of a stream from those of others.
type StreamName struct {
	Name string
	// Subjects is what all its subjects begin with, such as "slipway.J.".
	Subjects string
}

// Conn is a connection to one server. It is safe for concurrent use.
type Conn struct {
	calls   *caller
	core    *nats.Conn
	js      jetstream.JetStream
	onError func(error)
	closed  chan struct{}

	mu         sync.Mutex
	reconnect  chan struct{} // closed at each reconnect, then replaced
	lastReturn time.Time     // of the server, zero if it never was away
}

// Dial connects to the server of o. A server that goes away later is waited for without end. The caller calls Close.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{onError: o.OnError, closed: make(chan struct{}), reconnect: make(chan struct{})}
	c.calls = &caller{where: redacted(o), prefix: o.Prefix, streams: o.Streams}
	var err error
	if c.core, err = nats.Connect(o.URL, c.options(ctx, o)...); err != nil {
		return nil, explainDial(err, o)
	}
	if c.js, err = jetstream.New(c.core); err != nil {
		c.core.Close()
		return nil, err
	}
	c.calls.js = c.js
	return c, nil
}

// options of the connection. A silent partition is noticed after 20 to 30 s, not after the six minutes of the library's
// defaults. Nothing is buffered while the server is away: a heartbeat or an acknowledgment that arrives late would speak
// for a lease that belongs to another worker by then.
func (c *Conn) options(ctx context.Context, o Options) []nats.Option {
	timeout := TryTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline), time.Millisecond))
	}
	opts := []nats.Option{
		nats.Name(o.Name), nats.Timeout(timeout),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.onError(c.calls.denials.note(err)) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.onError(fmt.Errorf("%w: lost the NATS server: %w", job.ErrUnavailable, err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.announceReconnect() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if o.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	return append(opts, o.identity()...)
}

// identity is by what this side and the server's know each other.
func (o Options) identity() []nats.Option {
	var opts []nats.Option
	if o.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	}
	if o.NkeyFile != "" {
		opts = append(opts, func(to *nats.Options) error {
			nkey, err := nats.NkeyOptionFromSeed(o.NkeyFile)
			if err != nil {
				return err
			}
			return nkey(to)
		})
	}
	if o.CAFile != "" {
		opts = append(opts, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		opts = append(opts, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	if o.TLSFirst {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	return opts
}

// explainDial says where an error of the first connect comes from, and hints at the setting that it is about.
func explainDial(err error, o Options) error {
	where := redacted(o)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return hint.With(fmt.Errorf("%w: %w: %s: %w", job.ErrUnavailable, ErrCredentials, where, err),
			"check %s", o.who())
	case isTLS(err):
		return hint.With(fmt.Errorf("%w: %w: %s: %w", job.ErrUnavailable, ErrTLS, where, err),
			"check the authorities that are trusted, and the certificate that is shown to the server")
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout):
		return hint.With(fmt.Errorf("%w: no NATS server answers at URL %s: %w", job.ErrUnavailable, where, err),
			"is it running, and is the address right?")
	}
	return fmt.Errorf("%w: URL %s: %w", job.ErrUnavailable, where, err)
}

// who says where the user of this connection is named.
func (o Options) who() string {
	if file := cmp.Or(o.CredsFile, o.NkeyFile); file != "" {
		return fmt.Sprintf("the user of the credentials file %q", file)
	}
	return "the user in the URL, or give a credentials file"
}

// isTLS reports whether the two sides could not agree on TLS: a certificate that is not trusted, or none where one is wanted.
func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" || errors.Is(err, nats.ErrTLS) || errors.Is(err, nats.ErrSecureConnRequired) || errors.Is(err, nats.ErrSecureConnWanted)
}

// redacted is the server's address without a password or a token.
func redacted(o Options) string {
	if o.InProcess != nil {
		return "(in process)"
	}
	all := strings.Split(o.URL, ",")
	for i, s := range all {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil {
			all[i] = "(not a URL)"
			continue
		}
		if _, has := u.User.Password(); u.User != nil && !has {
			u.User = nil // a user without a password is a token
		}
		all[i] = u.Redacted()
	}
	return strings.Join(all, ",")
}

func (c *Conn) announceReconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.reconnect)
	c.reconnect, c.lastReturn = make(chan struct{}), time.Now()
}

// ReconnectedWithin reports whether the server was away less than d ago.
func (c *Conn) ReconnectedWithin(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lastReturn.IsZero() && time.Since(c.lastReturn) < d
}

// Reconnected returns a channel that is closed at the next reconnect.
func (c *Conn) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnect
}

// ReconnectCount is how often the connection was made anew.
func (c *Conn) ReconnectCount() uint64 { return c.core.Stats().Reconnects }

// Connected reports whether the server is reachable at this moment.
func (c *Conn) Connected() bool { return c.core.IsConnected() }

// Where is the server's address, without any password in it.
func (c *Conn) Where() string { return c.calls.where }

// Core is the plain NATS connection, for messages that no stream confirms.
func (c *Conn) Core() *nats.Conn { return c.core }

// Close ends the connection and waits for its goroutines. It may be called twice.
func (c *Conn) Close() {
	c.core.Close()
	<-c.closed
}
