package main

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"slipway/cmd/internal/cli"
	"slipway/job"
)

// TestWrongPrefix: a queue that nobody set up is a wrong setting, and is said at once.
func TestWrongPrefix(t *testing.T) {
	b := setup(t)
	b.withQueue()
	file := b.file("image: x\nsteps: [{run: 'true'}]\n")
	for _, args := range [][]string{{"create", file}, {"run", file}, {"status", string(job.NewID())}, {"logs", string(job.NewID())}, {"list"}} {
		began := time.Now()
		out, errOut, code := b.run(append([]string{"--nats-prefix", "other"}, args...)...)
		if code != 2 || !strings.Contains(errOut, "SLIPWAY_NATS_PREFIX, which is other") || !strings.Contains(errOut, "worker serve") {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want code 2 and the setting", args[0], code, out, errOut)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s, want it at once", args[0], took)
		}
	}
}

// goneQueue accepts jobs, and is removed then.
type goneQueue struct{ job.Client }

func (goneQueue) Result(context.Context, job.ID) (*job.Result, error) { return nil, job.ErrNotSetUp }

func (goneQueue) Follow(context.Context, job.ID, bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) { yield(job.Event{}, job.ErrNotSetUp) }
}

// TestQueueRemoved: what the caller asked for made sense when it was accepted.
func TestQueueRemoved(t *testing.T) {
	b := setup(t)
	b.withQueue()
	connect := b.app.connect
	b.app.connect = func(ctx context.Context, n cli.NATS) (job.Client, func(), error) {
		c, end, err := connect(ctx, n)
		return goneQueue{c}, end, err
	}
	_, errOut, code := b.run("run", b.file("image: x\nsteps: [{run: 'true'}]\n"))
	if code != 3 || !strings.Contains(errOut, "not set up") {
		t.Errorf("code %d, stderr %q; want 3 and why", code, errOut)
	}
}
