package natsqueue

import (
	"context"

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

// Repair runs the janitor's look once.
func (c *Conn) Repair(ctx context.Context, suspects map[job.ID]uint64) error {
	return c.repair(ctx, suspects)
}

// AnnounceReconnect does what a reconnection does.
func (k *Consumer) AnnounceReconnect() { k.conn.announceReconnect() }

// ResultLimit is the largest encoded result.
func (c *Conn) ResultLimit() int { return c.resultLimit() }
