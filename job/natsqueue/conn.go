package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// Conn is a connection to one queue. It is safe for concurrent use.
type Conn struct {
	cfg     Config
	names   names
	nc      *nats.Conn
	js      jetstream.JetStream
	denials denials
	closed  chan struct{}

	mu          sync.Mutex
	reconnected chan struct{} // closed at each reconnect, then replaced
	returned    time.Time     // of the last reconnect
}

// Connect connects to the server of cfg. A server that goes away later is waited
// for without end. The caller calls Close, after having closed its Consumers.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	c := &Conn{cfg: cfg, names: names(cfg.Prefix), closed: make(chan struct{}), reconnected: make(chan struct{})}
	opts, err := c.options(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if c.nc, err = nats.Connect(cfg.URL, opts...); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", c.explainConnect(err))
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return c, nil
}

// options of the connection. A silent partition is noticed after 20 to 30 s, not
// after the six minutes of the library's defaults. Nothing is buffered while the
// server is away: a late heartbeat or acknowledgment would speak for a lease that
// is somebody else's by then.
func (c *Conn) options(ctx context.Context) ([]nats.Option, error) {
	timeout := tryTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline), time.Millisecond))
	}
	opts := []nats.Option{
		nats.Name(c.cfg.Name), nats.Timeout(timeout),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.cfg.OnError(c.denials.note(err)) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.cfg.OnError(fmt.Errorf("%w: lost the NATS server: %w", job.ErrUnavailable, err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.announceReconnect() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if c.cfg.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(c.cfg.InboxPrefix))
	}
	if c.cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.cfg.InProcess))
	}
	if f := c.cfg.CredsFile; f != "" {
		if err := CheckCreds(f); err != nil {
			return nil, fmt.Errorf("CredsFile: %w", err)
		}
		opts = append(opts, nats.UserCredentials(f))
	}
	if f := c.cfg.CAFile; f != "" {
		if _, err := os.Stat(f); err != nil {
			return nil, fmt.Errorf("CAFile: %w", err)
		}
		opts = append(opts, nats.RootCAs(f))
	}
	return opts, nil
}

// explainConnect names the setting that an error at connect is about.
func (c *Conn) explainConnect(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("%w: the server at %s refused the credentials: check CredsFile (%q) or the user in URL: %w", job.ErrUnavailable, c.where(), c.cfg.CredsFile, err)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: no NATS server answers at URL %s: is it running, and is the address right? %w", job.ErrUnavailable, c.where(), err)
	}
	return fmt.Errorf("%w: URL %s: %w", job.ErrUnavailable, c.where(), err)
}

// where is the server's address, without any password in it.
func (c *Conn) where() string {
	if c.cfg.InProcess != nil {
		return "(in process)"
	}
	all := strings.Split(c.cfg.URL, ",")
	for i, s := range all {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			all[i] = u.Redacted()
			if u.User != nil {
				if _, has := u.User.Password(); !has {
					u.User = nil // a token stands where a user would
					all[i] = u.String()
				}
			}
		} else {
			all[i] = "(not a URL)"
		}
	}
	return strings.Join(all, ",")
}

func (c *Conn) announceReconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.reconnected)
	c.reconnected, c.returned = make(chan struct{}), time.Now()
}

// justBack reports whether the server was away less than d ago.
func (c *Conn) justBack(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.returned.IsZero() && time.Since(c.returned) < d
}

// reconnect returns a channel that is closed at the next reconnect.
func (c *Conn) reconnect() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnected
}

// remade is how often the connection was made anew.
func (c *Conn) remade() uint64 { return c.nc.Stats().Reconnects }

// Connected reports whether the server is reachable at this moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Close ends the connection and waits for its goroutines. It may be called twice.
func (c *Conn) Close() {
	c.nc.Close()
	<-c.closed
}
