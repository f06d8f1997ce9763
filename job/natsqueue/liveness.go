package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// WorkerInfo is what a worker says about itself while it is alive.
type WorkerInfo struct {
	Name      string       `json:"name"`
	Boot      string       `json:"boot"`
	StartedAt time.Time    `json:"started_at"`
	Queues    []string     `json:"queues"`
	Slots     int          `json:"slots,omitempty"`
	Version   string       `json:"version,omitempty"`
	Running   []RunningJob `json:"running,omitempty"`
}

// RunningJob is a claim that a worker works on: one whose lease was confirmed lately.
type RunningJob struct {
	ID    job.ID `json:"id"`
	Fence uint64 `json:"fence"`
}

// Workers lists the workers that are alive, by name.
func (c *Conn) Workers(ctx context.Context) ([]WorkerInfo, error) {
	prefix := key(c.names.workers(), "")
	found, err := c.subjects(ctx, bucket(c.names.workers()), prefix+">")
	if err != nil {
		return nil, err
	}
	var all []WorkerInfo
	for subject := range found {
		w, _, err := c.worker(ctx, subject[len(prefix):])
		if err != nil {
			return nil, err
		}
		if w != nil {
			all = append(all, *w)
		}
	}
	slices.SortFunc(all, func(a, b WorkerInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// worker reads one worker's entry, nil if there is none.
func (c *Conn) worker(ctx context.Context, name string) (*WorkerInfo, uint64, error) {
	data, seq, err := c.getKey(ctx, c.names.workers(), name)
	if err != nil || data == nil {
		return nil, seq, err
	}
	w := new(WorkerInfo)
	if err := json.Unmarshal(data, w); err != nil || w.Name == "" {
		return nil, seq, nil //nolint:nilerr // what nobody can read keeps no job from running
	}
	return w, seq, nil
}

// alive reports whether the owner of rec lives, and works on this very claim.
func (k *Consumer) alive(ctx context.Context, id job.ID, rec *record) (bool, error) {
	if rec.Owner == k.cfg.Worker {
		return false, nil // ours would have been adopted, and one claim of a job is under way at a time
	}
	// A server that was away hands out again what is in work, and has forgotten who is
	// alive: until a lease has passed, the owner may be as alive as we are.
	if k.conn.justBack(k.conn.cfg.Timing.Lease) {
		return true, nil
	}
	w, _, err := k.conn.worker(ctx, rec.Owner)
	if err != nil || w == nil || w.Boot != rec.Boot {
		return false, err
	}
	// A claim of a moment ago may not stand in the worker's entry yet.
	return w.runs(id, rec.Fence) || time.Since(rec.StartedAt).Abs() < k.conn.cfg.Timing.Lease, nil
}

// runs reports whether a live worker says that it works on a claim. A nil one says nothing.
func (w *WorkerInfo) runs(id job.ID, fence uint64) bool {
	return w != nil && slices.Contains(w.Running, RunningJob{ID: id, Fence: fence})
}

// claimName makes sure that no other process goes by this worker's name. The
// entry of a dead one is waited out.
func (k *Consumer) claimName(ctx context.Context) error {
	deadline := time.Now().Add(k.conn.cfg.workerTTL() + 2*time.Second)
	var seen uint64
	for {
		w, seq, err := k.conn.worker(ctx, k.cfg.Worker)
		if err != nil {
			return err
		}
		if w != nil && w.Boot == k.boot {
			return nil // by an earlier try, whose confirmation was lost
		}
		if w == nil {
			err = k.publishLiveness(ctx, jetstream.WithExpectLastSequencePerSubject(seq))
			if !conflicts(err) {
				return err
			}
			continue
		}
		if (seen != 0 && seq != seen) || time.Now().After(deadline) {
			return fmt.Errorf("the name is in use by another process, started %s: give each worker its own (setting Worker)", w.StartedAt.Format(time.RFC3339))
		}
		seen = seq
		if !wait(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// live says again and again that the worker is alive, and at once when what it runs changes.
func (k *Consumer) live() {
	every := k.conn.cfg.workerTTL() / 4
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-t.C:
		case <-k.news:
		}
		ctx, cancel := context.WithTimeout(k.ctx, every)
		err := k.publishLiveness(ctx)
		cancel()
		if err != nil && k.ctx.Err() == nil {
			k.conn.cfg.OnError(err)
		}
	}
}

// publishLiveness writes the worker's entry with a lifetime. The library's own
// update of a key would drop it.
func (k *Consumer) publishLiveness(ctx context.Context, opts ...jetstream.PublishOpt) error {
	w := WorkerInfo{
		Name: k.cfg.Worker, Boot: k.boot, StartedAt: k.began, Queues: k.cfg.Queues,
		Slots: k.cfg.Slots, Version: k.cfg.Version, Running: k.runningList(),
	}
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("say that worker %s is alive: %w", k.cfg.Worker, err)
	}
	msg := nats.NewMsg(key(k.conn.names.workers(), k.cfg.Worker))
	msg.Data = data
	return k.conn.publish(ctx, "say that worker "+k.cfg.Worker+" is alive", msg, append(opts, jetstream.WithMsgTTL(k.conn.cfg.workerTTL()))...)
}

// runningList holds what makes progress: a hung job in a live process must not
// keep others from taking it over.
func (k *Consumer) runningList() []RunningJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []RunningJob
	for id, l := range k.running {
		if l.fresh(k.conn.cfg.Timing.Lease) {
			all = append(all, RunningJob{ID: id, Fence: l.d.Fence})
		}
	}
	return all
}

// leave removes the worker's entry.
func (k *Consumer) leave(ctx context.Context) error {
	msg := nats.NewMsg(key(k.conn.names.workers(), k.cfg.Worker))
	msg.Header.Set("KV-Operation", "DEL")
	return k.conn.publish(ctx, "leave the queue", msg, jetstream.WithMsgTTL(k.conn.cfg.workerTTL()))
}
