package natsqueue

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// Kill has the worker die without a word: no liveness, no cancels, no fetching.
// Its leases can still speak, as those of a zombie. When Kill returns, the server has been told that nobody takes due jobs
// here any more: one that comes to a stopped mover is stuck for half a minute.
func (k *Consumer) Kill() {
	k.fetch.close()
	_ = k.unsub()
	k.mover.Stop()
	<-k.mover.Closed()
	k.cancel(errClosed)
}

// ReplayAll tries each kept result once, and returns how many are left.
func (k *Consumer) ReplayAll(ctx context.Context) int {
	return (&replays{q: k.q, box: k.outbox, boot: k.boot, lease: k.lease}).all(ctx)
}

// Exported for tests.
var (
	EncodeResult = encodeResult
	Shorten      = shorten
)

// ListPage is how many jobs of a list are read at once.
const ListPage = listPage

// Sweep is what the janitor knows from one look to the next.
type Sweep = sweep

// NewSweep knows nothing yet.
func (c *Conn) NewSweep() *Sweep { return newSweep(c) }

// Open is how many jobs it looks after.
func (s *sweep) Open() int { return len(s.open) }

// Look runs the janitor's look once.
func (s *sweep) Look(ctx context.Context) error { return s.look(ctx) }

// Tend does one round of the janitor.
func (k *Consumer) Tend(s *Sweep, every time.Duration) *Sweep {
	return (&janitor{q: k.q, boot: k.boot}).tend(k.ctx, s, every)
}

// Reconnect makes the worker's connection anew.
func (k *Consumer) Reconnect() error { return k.q.Reconnect() }

// Version is a record as it was read.
type Version = version

// ResultSize is how many bytes the decided result has.
func (v version) ResultSize() int { return len(v.rec.Result) }

// Judge is what a claim by k makes of v, without writing it. It reports whether the claim decides the job.
func (k *Consumer) Judge(ctx context.Context, id job.ID, v Version) (next Version, decides bool, err error) {
	what, rec, _, err := k.judge(ctx, id, v.rec)
	return version{rec: rec}, what == actionConclude, err
}

// Result decodes the decided result.
func (v version) Result() (*job.Result, error) { return decodeResult(v.rec.Result) }

// State is the record's.
func (v version) State() job.State { return v.rec.State }

// Load reads the record of id.
func (c *Conn) Load(ctx context.Context, id job.ID) (Version, error) { return c.records.load(ctx, id) }

// GiveUp does what a janitor does that read v and found no message of the job.
func (c *Conn) GiveUp(ctx context.Context, id job.ID, v Version) error {
	return newSweep(c).giveUp(ctx, id, v)
}

// Settle follows a decision without a token in hand.
func (c *Conn) Settle(ctx context.Context, id job.ID, v Version) error {
	return c.decisions.settle(ctx, id, v, nil, nil)
}

// Forget makes s believe that the sequences it read stood for other versions.
func (s *sweep) Forget() { clear(s.open) }

// Ahead makes s believe that it read a store that came further.
func (s *sweep) Ahead() { s.from += 1000 }

// Age makes s older.
func (s *sweep) Age(d time.Duration) { s.began = s.began.Add(-d) }

// Reconnect makes the connection anew.
func (c *Conn) Reconnect() error { return c.js.Core().ForceReconnect() }

// RemoveTokens removes what stands for a job.
func (c *Conn) RemoveTokens(ctx context.Context, id job.ID) error { return c.tokens.remove(ctx, id) }

// DeleteToken removes one message of JOBS.
func (c *Conn) DeleteToken(ctx context.Context, seq uint64) error {
	return c.streams.jobs.Delete(ctx, seq)
}

// ForgetResult removes the newest result of a job.
func (c *Conn) ForgetResult(ctx context.Context, id job.ID) error {
	return c.streams.results.DeleteLast(ctx, c.names.anyResult(id))
}

// JobsInfo describes the stream of the tokens.
func (c *Conn) JobsInfo(ctx context.Context) (*jetstream.StreamInfo, error) {
	return c.streams.jobs.Info(ctx)
}
