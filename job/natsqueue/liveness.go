package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/internal/pause"
	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// WorkerInfo is what a worker publishes about itself while it is alive.
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

// runs reports whether the worker says that it works on a claim. A nil worker says nothing.
func (w *WorkerInfo) runs(id job.ID, fence uint64) bool {
	return w != nil && slices.Contains(w.Running, RunningJob{ID: id, Fence: fence})
}

// workers are the entries of the living workers of one queue.
type workers struct{ bucket jsconn.Bucket }

// list returns the workers that are alive, by name.
func (ws workers) list(ctx context.Context) ([]WorkerInfo, error) {
	prefix := ws.bucket.Key("")
	found, err := ws.bucket.Subjects(ctx, ws.bucket.Key(">"))
	if err != nil {
		return nil, err
	}
	var names []string
	for subject := range found {
		names = append(names, subject[len(prefix):])
	}
	alive := map[string]WorkerInfo{}
	err = ws.bucket.GetEach(ctx, names, func(name string, data []byte) {
		if w := parseWorker(data); w != nil {
			alive[name] = *w
		}
	})
	return slices.SortedFunc(maps.Values(alive), func(a, b WorkerInfo) int { return cmp.Compare(a.Name, b.Name) }), err
}

// get reads one worker's entry, nil if there is none.
func (ws workers) get(ctx context.Context, name string) (*WorkerInfo, uint64, error) {
	data, seq, err := ws.bucket.Get(ctx, name)
	if err != nil || data == nil {
		return nil, seq, err
	}
	return parseWorker(data), seq, nil
}

// parseWorker reads an entry, nil if that is not possible: it keeps no job from running.
func parseWorker(data []byte) *WorkerInfo {
	w := new(WorkerInfo)
	if err := json.Unmarshal(data, w); err != nil || w.Name == "" {
		return nil
	}
	return w
}

// presence publishes that one worker is alive, and what it runs.
type presence struct {
	js          *jsconn.Conn
	names       names
	workers     workers
	ttl         time.Duration
	self        WorkerInfo // without the running list
	progressing func() []RunningJob
	changed     chan struct{} // the running list changed
	seq         uint64        // of the entry as this process last wrote it
	tookOver    time.Time     // when the entry of a dead process was replaced; zero: there was none
	onError     func(error)
}

func newPresence(k *Consumer) *presence {
	return &presence{
		js: k.q.js, names: k.q.names, workers: k.q.workers, ttl: k.q.cfg.workerTTL(), progressing: k.progressing,
		self: WorkerInfo{
			Name: k.cfg.Worker, Boot: k.boot, StartedAt: time.Now().UTC(), Queues: k.cfg.Queues, Slots: k.cfg.Slots, Version: k.cfg.Version,
		},
		changed: make(chan struct{}, 1), onError: k.q.cfg.OnError,
	}
}

// claimName makes sure that no other process goes by this worker's name. The process of an entry is asked whether it lives.
// If that can't be told, it is waited for: a living process renews its entry four times in a ttl. So an entry that stays
// the same for a ttl belongs to a dead process, and is replaced if the server, which may be busy, has not removed it yet.
func (p *presence) claimName(ctx context.Context) error {
	var seen uint64
	var since time.Time // of the first look at the entry
	for asked := ""; ; {
		w, seq, err := p.workers.get(ctx, p.self.Name)
		if err != nil {
			return err
		}
		switch {
		case w != nil && w.Boot == p.self.Boot:
			return nil // an earlier try wrote it, and its confirmation was lost
		case w == nil, seq == seen && time.Since(since) > p.ttl:
			err = p.publish(ctx, seq)
			if !jsconn.Conflicts(err) {
				return err
			}
			// Another process was faster, or the entry expired just now: look again after the pause.
		case asked != w.Boot:
			asked = w.Boot
			switch err := p.ask(ctx, w.Boot); {
			case err == nil:
				return inUse(w)
			case errors.Is(err, nats.ErrNoResponders):
				seen, since, p.tookOver = seq, time.Time{}, time.Now() // as if it had stayed the same for long enough
			}
			continue
		case seen != 0 && seq != seen:
			return inUse(w)
		case seen == 0:
			seen, since = seq, time.Now()
		}
		if !pause.For(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func inUse(w *WorkerInfo) error {
	return hint.With(fmt.Errorf("the name is in use by another process, started %s", w.StartedAt.Format(time.RFC3339)),
		"give each worker a name of its own (setting Worker)")
}

// askTime bounds the question whether a process lives.
const askTime = time.Second

// ask asks a process of this worker's name whether it lives. It returns nil if the process answers, nats.ErrNoResponders if
// no such process is connected, and another error if that can't be told: a process that hangs does not answer, and an
// account may lack the right to ask or to answer.
func (p *presence) ask(ctx context.Context, boot string) error {
	if !bootName.MatchString(boot) {
		return fmt.Errorf("boot %.40q of worker %s is no name", boot, p.self.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := p.js.Core().RequestWithContext(ctx, p.names.process(p.self.Name, boot), nil)
	return err
}

// bootName is what rand.Text makes.
var bootName = regexp.MustCompile(`^[A-Z2-7]+$`)

// keep renews the worker's entry again and again, and at once when the running list changes.
func (p *presence) keep(ctx context.Context) {
	every := p.ttl / 4
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-p.changed:
		}
		tryCtx, cancel := context.WithTimeout(ctx, every)
		err := p.renew(tryCtx)
		cancel()
		if err != nil && ctx.Err() == nil {
			p.onError(err)
		}
	}
}

// announce has the running list published soon.
func (p *presence) announce() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// renew publishes the worker's entry anew, unless another process has the name by now: this one may have stood still for
// longer than its entry lived, and the jobs of the other would count as nobody's.
func (p *presence) renew(ctx context.Context) error {
	err := p.publish(ctx, p.seq)
	if !jsconn.Conflicts(err) {
		return err
	}
	// A confirmation was lost, or the entry: it expired, or the server that kept it was away.
	w, seq, err := p.workers.get(ctx, p.self.Name)
	switch {
	case err != nil:
		return err
	case w != nil && w.Boot != p.self.Boot:
		return inUse(w)
	}
	return p.publish(ctx, seq)
}

// publish writes the worker's entry, with a lifetime, in place of the one with the sequence last. The library's own update
// of a key would drop the lifetime.
func (p *presence) publish(ctx context.Context, last uint64) error {
	w := p.self
	w.Running = p.progressing()
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("say that worker %s is alive: %w", w.Name, err)
	}
	msg := nats.NewMsg(p.workers.bucket.Key(w.Name))
	msg.Data = data
	seq, err := p.js.Replace(ctx, "say that worker "+w.Name+" is alive", msg, last, jetstream.WithMsgTTL(p.ttl))
	if err == nil {
		p.seq = seq
	}
	return err
}

// leave removes the worker's entry, but not that of another process, which took the name over meanwhile.
func (p *presence) leave(ctx context.Context) error {
	for {
		w, seq, err := p.workers.get(ctx, p.self.Name)
		if err != nil || w == nil || w.Boot != p.self.Boot {
			return err
		}
		_, err = p.js.Replace(ctx, "remove the entry of worker "+w.Name, p.workers.bucket.Removal(w.Name), seq, jetstream.WithMsgTTL(p.ttl))
		if !jsconn.Conflicts(err) {
			return err
		}
		// A last renewal came later than the look, or an earlier try of this call was not confirmed: look again.
	}
}
