package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// checkTimeout is the default of Check.Timeout.
	checkTimeout = 2 * time.Second
	// checkAge is how long the answer of a check is reused: probes may come often, and must stay cheap.
	checkAge = 2 * time.Second
)

// checkDraining is the name of the check that every Health has.
const checkDraining = "draining"

// Check tests one thing that a worker needs.
type Check struct {
	// Name is one word: nats, engine, store, disk.
	Name string
	// Run returns nil if the check passes, else an error that says what to do. It must
	// return when its context ends.
	Run func(ctx context.Context) error
	// Timeout bounds one run. Default 2 s.
	Timeout time.Duration
}

// Status is the last answer of a check.
type Status struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	// Error says what is wrong. It is empty if OK.
	Error string `json:"error,omitempty"`
}

// Health tells whether a worker can take jobs. It is also the prometheus.Collector
// of slipway_ready{check}. It is safe for concurrent use.
type Health struct {
	ctx      context.Context
	draining func() bool
	checks   []*check
}

// NewHealth makes a Health of checks. ctx lives as long as the program. draining
// reports whether the worker takes no more jobs, as (*Recorder).IsDraining does; it may be
// nil. NewHealth panics if a check has no name or the name of another one.
//
// All checks run at the same time. Probes share one run of a check, and its answer is
// reused for 2 s. A check that does not return in time counts as failed, and runs again
// only after it has returned.
func NewHealth(ctx context.Context, draining func() bool, checks ...Check) *Health {
	h := &Health{ctx: ctx, draining: draining}
	names := map[string]bool{checkDraining: true}
	for _, c := range checks {
		if c.Name == "" || names[c.Name] {
			panic(fmt.Errorf("make health: the check %q is named twice, or not at all", c.Name))
		}
		names[c.Name] = true
		if c.Timeout <= 0 {
			c.Timeout = checkTimeout
		}
		h.checks = append(h.checks, &check{Check: c})
	}
	return h
}

// Ready runs the checks and returns their answers in order, draining last. ok reports
// whether all of them pass.
func (h *Health) Ready() (statuses []Status, ok bool) {
	statuses = make([]Status, len(h.checks), len(h.checks)+1)
	var wg sync.WaitGroup
	for i, c := range h.checks {
		wg.Go(func() { statuses[i] = c.status(h.ctx) })
	}
	wg.Wait()
	statuses = append(statuses, h.drainStatus())
	ok = true
	for _, s := range statuses {
		ok = ok && s.OK
	}
	return statuses, ok
}

func (h *Health) drainStatus() Status {
	if h.draining != nil && h.draining() {
		return Status{Check: checkDraining, Error: "the worker is stopping and takes no more jobs"}
	}
	return Status{Check: checkDraining, OK: true}
}

// Describe implements prometheus.Collector.
func (h *Health) Describe(ch chan<- *prometheus.Desc) { ch <- readyDesc() }

// Collect implements prometheus.Collector.
func (h *Health) Collect(ch chan<- prometheus.Metric) {
	statuses, _ := h.Ready()
	for _, s := range statuses {
		v := 0.0
		if s.OK {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(readyDesc(), prometheus.GaugeValue, v, s.Check)
	}
}

func readyDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_ready", "1 if the check passes, 0 if not. A worker is ready if all pass.", []string{"check"}, nil)
}

// check is a Check with its last answer.
type check struct {
	Check

	mu      sync.Mutex
	running chan struct{} // closed when the current run ends; nil while the check does not run
	err     error
	at      time.Time // of err; zero before the first answer
}

// status returns the answer of the check, not older than checkAge. It starts a run or waits for
// the one that goes on, if it must.
func (c *check) status(ctx context.Context) Status {
	run := c.join(ctx)
	if run != nil {
		timer := time.NewTimer(c.Timeout + c.Timeout/4) // a little more than the run itself has
		defer timer.Stop()
		select {
		case <-run:
		case <-timer.C:
			return Status{Check: c.Name, Error: fmt.Sprintf("no answer within %s", c.Timeout)}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return Status{Check: c.Name, Error: printable(c.err.Error())}
	}
	return Status{Check: c.Name, OK: true}
}

// join returns the run to wait for, or nil if the last answer is fresh enough.
func (c *check) join(ctx context.Context) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return c.running
	}
	if !c.at.IsZero() && time.Since(c.at) < checkAge {
		return nil
	}
	done := make(chan struct{})
	c.running = done
	go func() { // ends with its context, as Check.Run must
		ctx, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		err := c.safely(ctx)
		c.mu.Lock()
		c.err, c.at, c.running = err, time.Now(), nil
		c.mu.Unlock()
		close(done)
	}()
	return done
}

// safely turns a panic into a failed check: a probe must not end the worker.
func (c *check) safely(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return c.Run(ctx)
}
