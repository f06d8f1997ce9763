package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
)

// Kill has the worker die without a word: no liveness, no cancels, no fetching.
// Its leases can still speak, as those of a zombie.
func (k *Consumer) Kill() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	_ = k.unsub()
	k.mover.Stop()
	k.cancel(errClosed)
}

// Exported for tests.
var (
	EncodeResult = encodeResult
	Shorten      = shorten
)

// Sweep is what the janitor knows from one look to the next.
type Sweep = sweep

// NewSweep knows nothing yet.
func (c *Conn) NewSweep() *Sweep { return newSweep(c) }

// Open is how many jobs it looks after.
func (s *sweep) Open() int { return len(s.open) }

// Look runs the janitor's look once.
func (s *sweep) Look(ctx context.Context) error { return s.look(ctx) }

// Tend does one round of the janitor.
func (k *Consumer) Tend(s *Sweep, every time.Duration) *Sweep { return k.tend(s, every) }

// AnnounceReconnect does what a reconnection does.
func (k *Consumer) AnnounceReconnect() { k.conn.announceReconnect() }

// ResultLimit is the largest encoded result.
func (c *Conn) ResultLimit() int { return c.resultLimit() }

// Version is a record as it was read.
type Version = version

// Load reads the record of id.
func (c *Conn) Load(ctx context.Context, id job.ID) (Version, error) { return c.load(ctx, id) }

// GiveUp is what a janitor does that read v and found no message of the job.
func (c *Conn) GiveUp(ctx context.Context, id job.ID, v Version) error { return c.giveUp(ctx, id, v) }

// Settle follows a decision without a token in hand.
func (c *Conn) Settle(ctx context.Context, id job.ID, v Version) error {
	return c.settle(ctx, id, v.rec, nil, nil)
}

// Forget makes s believe that the sequences it read stood for other versions.
func (s *sweep) Forget() { clear(s.open) }

// Ahead makes s believe that it read a store that came further.
func (s *sweep) Ahead() { s.from += 1000 }

// Age makes s older.
func (s *sweep) Age(d time.Duration) { s.began = s.began.Add(-d) }

// Reconnect makes the connection anew.
func (c *Conn) Reconnect() error { return c.nc.ForceReconnect() }

// NoteDenials has the server deny n subjects, and returns how many are remembered, and whether the last is.
func NoteDenials(n int) (int, bool) {
	var d denials
	var subject string
	for i := range n {
		subject = fmt.Sprintf("s.%d", i)
		_ = d.note(fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, subject))
	}
	return len(d.seen), d.get(subject) != nil
}
