package natsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
)

// chaos is one run: workers die, hang, wake up and lose their server, users cancel jobs. It counts commits and results, and
// checks them in the end.
type chaos struct {
	*bundle
	t    *testing.T
	jobs int

	mu      sync.Mutex
	rng     *rand.Rand
	commits map[job.ID]int
	seen    map[string]int
	spawned int
}

func (c *chaos) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

// worker runs until it is told to die, or ctx ends; the dead are replaced.
func (c *chaos) worker(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		c.spawned++
		name := "w" + strconv.Itoa(c.spawned)
		c.mu.Unlock()
		conn, err := natsqueue.Connect(ctx, c.cfg)
		if err != nil {
			<-time.After(50 * time.Millisecond) // the server is away
			continue
		}
		w, err := conn.Consumer(ctx, natsqueue.ConsumerConfig{Worker: name})
		if err != nil {
			conn.Close()
			continue
		}
		c.live(ctx, w)
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.bound(30*time.Second))
		if err := w.Close(closeCtx); err != nil && !errors.Is(err, job.ErrUnavailable) {
			c.t.Errorf("Close: %v", err)
		}
		cancel()
		conn.Close()
	}
}

// live takes jobs until this worker dies.
func (c *chaos) live(ctx context.Context, w *natsqueue.Consumer) {
	var wg sync.WaitGroup
	var killed atomic.Bool // before Kill: the other slot's Next fails at once, slot ends a moment later
	slot, die := context.WithCancel(ctx)
	defer func() { wg.Wait(); die() }()
	for range 2 {
		wg.Go(func() {
			for slot.Err() == nil {
				l, err := w.Next(slot)
				if err != nil {
					if slot.Err() == nil && !killed.Load() {
						c.t.Errorf("Next: %v", err)
					}
					return
				}
				if c.attempt(ctx, l) {
					killed.Store(true)
					w.Kill()
					die()
				}
			}
		})
	}
}

// attempt draws lots for what becomes of l, and reports whether the worker died.
func (c *chaos) attempt(ctx context.Context, l job.Lease) (dead bool) {
	h := &holder{lease: l, timing: c.cfg.Timing}
	h.start(ctx)
	<-time.After(time.Duration(c.roll(60)) * time.Millisecond)
	fate := c.roll(100)
	if fate < 4 {
		h.stop()
		c.count("died")
		return true
	}
	if fate < 8 { // a zombie: silent until another worker has the job, then it goes on
		h.stop()
		<-time.After(c.cfg.Timing.AckWait + time.Duration(c.roll(1000))*time.Millisecond)
	} else if h.stop() {
		c.count("fenced")
		return false
	}
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.bound(10*time.Second))
	defer cancel()
	var err error
	switch {
	case fate < 8, fate >= 25:
		_, err = l.Commit(endCtx, &job.Result{Outcome: job.Succeeded})
		if err == nil {
			c.mu.Lock()
			c.commits[l.Delivery().ID]++
			c.mu.Unlock()
		}
	case fate < 14:
		err = l.Requeue(endCtx, job.ClassInfra, time.Duration(c.roll(200))*time.Millisecond, job.Failure{Outcome: job.Errored, Reason: job.ReasonImagePull})
	case fate < 20:
		err = l.Requeue(endCtx, job.ClassJob, 0, job.Failure{Outcome: job.Failed, Reason: job.ReasonExit})
	default:
		err = l.Release(endCtx)
	}
	switch {
	case errors.Is(err, job.ErrLeaseLost):
		c.count("refused")
	case errors.Is(err, job.ErrUnavailable):
		c.count("unavailable")
	case err != nil:
		c.t.Errorf("end of an attempt: %v", err)
	}
	return false
}

// produce submits all jobs, cancels some, and returns their ids.
func (c *chaos) produce(ctx context.Context) []job.ID {
	client := c.conn.Client()
	var ids []job.ID
	for range c.jobs {
		j := makeJob()
		j.Priority = []job.Priority{job.PriorityHigh, job.PriorityNormal, job.PriorityLow}[c.roll(3)]
		if c.roll(10) == 0 {
			j.NotBefore = time.Now().Add(time.Duration(c.roll(1500)) * time.Millisecond)
		}
		for {
			err := client.Submit(ctx, j)
			if err == nil || errors.Is(err, job.ErrExists) {
				break
			}
			if !errors.Is(err, job.ErrUnavailable) {
				c.t.Errorf("Submit: %v", err)
				break
			}
		}
		ids = append(ids, j.ID)
		if c.roll(12) == 0 {
			if _, err := client.Cancel(ctx, ids[c.roll(len(ids))], job.Cancel); err == nil {
				c.count("cancels")
			}
		}
		<-time.After(time.Duration(c.roll(30)) * time.Millisecond)
	}
	return ids
}

// TestChaos takes a quarter of a minute. SLIPWAY_CHAOS_JOBS makes it longer, as
// `make test` does, and SLIPWAY_CHAOS_SEED repeats the dice of a run, if not its races.
func TestChaos(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a quarter of a minute: run without -short")
	}
	jobs, seed := env(t, "SLIPWAY_CHAOS_JOBS", 40), env(t, "SLIPWAY_CHAOS_SEED", int(time.Now().UnixNano()%1e9))
	r := startRestartable(t)
	b := setupOn(t, r, func(c *natsqueue.Config) { c.CrashBudget = 1000 })
	c := &chaos{bundle: b, t: t, jobs: jobs, rng: rand.New(rand.NewPCG(uint64(seed), 0)), commits: map[job.ID]int{}, seen: map[string]int{}}
	t.Logf("seed %d", seed)

	ctx := t.Context() // no deadline: a server that is slow is no fault, see await
	work, stop := context.WithCancel(ctx)
	var workers, faults sync.WaitGroup
	for range 4 {
		workers.Go(func() { c.worker(work) })
	}
	quit := make(chan struct{})
	faults.Go(func() {
		for i := 0; ; i++ {
			<-time.After(time.Duration(300+c.roll(900)) * time.Millisecond)
			down := 150 * time.Millisecond
			if i%3 == 2 {
				down = b.cfg.Timing.AckWait + 300*time.Millisecond // every job in work is handed out again
			}
			r.restart(down)
			c.count("restarts")
			select {
			case <-quit:
				return
			default:
			}
		}
	})
	ids := c.produce(ctx)
	close(quit)
	faults.Wait()
	c.await("results that are missing", func() int { return len(ids) - len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) })
	c.await("tokens that are left", func() int { return len(b.stored("JOBS", b.cfg.Prefix+".J.>")) })
	stop()
	workers.Wait()
	c.verify(ids)
}

// await waits until left is zero, for as long as it moves: a slow server takes its time, and only a standstill means that
// a job is lost.
func (c *chaos) await(what string, left func() int) {
	c.t.Helper()
	standstill := 20 * c.cfg.Timing.AckWait // the janitor looks every fifth, and repairs at its second look
	last, since := left(), time.Now()
	for last > 0 {
		<-time.After(50 * time.Millisecond)
		if now := left(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > standstill {
			c.t.Errorf("%s: got %d, and nothing moved for %s", what, last, standstill)
			return
		}
	}
}

// verify checks that each job has one result, which is that of its record, and one winner at most.
func (c *chaos) verify(ids []job.ID) {
	c.t.Helper()
	results := c.stored("RESULTS", c.cfg.Prefix+".R.>")
	if len(results) != len(ids) {
		c.t.Errorf("results: got %d for %d accepted jobs", len(results), len(ids))
	}
	s := c.stream("RESULTS")
	outcomes := map[job.Outcome]int{}
	for _, id := range ids {
		subject := fmt.Sprintf("%s.R.default.%s.1", c.cfg.Prefix, id)
		if results[subject] != 1 {
			c.t.Errorf("job %s: got %d results, want 1", id, results[subject])
			continue
		}
		if n := c.commits[id]; n > 1 {
			c.t.Errorf("job %s: %d commits were told that they won", id, n)
		}
		outcomes[c.sameAsRecord(s, id, subject)]++
	}
	c.t.Logf("jobs %d, outcomes %v, %v, workers %d", len(ids), outcomes, c.seen, c.spawned)
}

// sameAsRecord checks that readers see what the record decided.
func (c *chaos) sameAsRecord(s jetstream.Stream, id job.ID, subject string) job.Outcome {
	msg, err := s.GetLastMsgForSubject(c.t.Context(), subject)
	if err != nil {
		c.t.Errorf("job %s: %v", id, err)
		return ""
	}
	var published job.Result
	if err := json.Unmarshal(msg.Data, &published); err != nil {
		c.t.Errorf("job %s: %v", id, err)
	}
	decided, err := c.conn.Client().Result(c.t.Context(), id)
	if err != nil || decided.Fence != published.Fence || decided.Outcome != published.Outcome || !decided.FinishedAt.Equal(published.FinishedAt) {
		c.t.Errorf("job %s: the record says %+v (%v), the result %+v", id, decided, err, published)
	}
	return published.Outcome
}

func env(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
