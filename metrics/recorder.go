package metrics

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway/job"
)

// Recorder counts what one worker does. It is a runner.Observer. It is safe for
// concurrent use, and its methods don't block.
type Recorder struct {
	lists lists
	m     *instruments

	// mu guards the amounts that this recorder has added to the gauges. Other recorders may share the gauges.
	mu          sync.Mutex
	total, busy int
	draining    bool
}

// New makes a Recorder and registers its metrics with reg. queues are those that the worker serves: jobs of any other one are
// counted under the queue "other", and so are those beyond the first 99.
//
// Recorders of the same registry share their metrics: counters, histograms and
// the slots of their workers add up. Recorders of different registries share
// nothing. Use one Recorder for each worker.
//
// New panics, as prometheus.MustRegister does, if reg already has another kind of
// metric under one of the names, which is a mistake of the program.
func New(reg prometheus.Registerer, queues ...string) *Recorder {
	r := &Recorder{lists: newLists(queues), m: newInstruments()}
	r.m.register(reg)
	r.m.initialize(r.lists)
	return r
}

// Slots records how many slots the worker has and how many are busy.
func (r *Recorder) Slots(total, busy int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Adding the differences lets the slots of workers that share a registry add up.
	r.m.slots.Add(float64(total - r.total))
	r.m.busy.Add(float64(busy - r.busy))
	r.total, r.busy = total, busy
}

// JobClaimed counts an attempt that begins, and records how long its job has waited.
func (r *Recorder) JobClaimed(queue string, waited time.Duration) {
	r.m.claimed.Inc()
	r.m.queueWait.WithLabelValues(r.lists.queues.label(queue)).Observe(seconds(waited))
}

// PhaseDone counts the end of a phase.
func (r *Recorder) PhaseDone(phase string, took time.Duration, ok bool) {
	phase = r.lists.phases.label(phase)
	r.m.phase.WithLabelValues(phase).Observe(seconds(took))
	if !ok {
		r.m.phaseFailures.WithLabelValues(phase).Inc()
	}
}

// StepDone counts the end of a step's last try.
func (r *Recorder) StepDone(status job.StepStatus, took time.Duration) {
	r.m.step.WithLabelValues(r.lists.statuses.label(string(status))).Observe(seconds(took))
}

// StepRetried counts a step that is tried again.
func (r *Recorder) StepRetried() { r.m.stepRetries.Inc() }

// JobDone counts a committed result, and records how long the job took if it has started.
func (r *Recorder) JobDone(res *job.Result) {
	if res == nil {
		return
	}
	outcome := r.lists.outcomes.label(string(res.Outcome))
	queue := r.lists.queues.label(res.Queue)
	r.m.jobs.WithLabelValues(outcome, r.lists.reason(res.Reason)).Inc()
	r.m.queueJobs.WithLabelValues(queue, outcome).Inc()
	for _, step := range res.Steps {
		r.m.queueCPU.WithLabelValues(queue).Add(seconds(time.Duration(step.CPU)))
	}
	if !res.StartedAt.IsZero() && !res.FinishedAt.IsZero() {
		took := seconds(res.FinishedAt.Sub(res.StartedAt))
		r.m.job.WithLabelValues(outcome).Observe(took)
		r.m.queueJob.WithLabelValues(queue).Observe(took)
	}
}

// JobRetried counts an attempt that ended without a result. class is the budget that pays for the next one.
func (r *Recorder) JobRetried(class job.Class, reason job.Reason) {
	r.m.retries.WithLabelValues(r.lists.classes.label(string(class)), r.lists.reason(reason)).Inc()
}

// LeaseLost counts an attempt that was dropped. fenced reports whether the worker gave it
// up itself because no heartbeat was confirmed for a whole lease; else another worker owns
// the job or its result was decided.
func (r *Recorder) LeaseLost(fenced bool) {
	cause := causeTaken
	if fenced {
		cause = causeFenced
	}
	r.m.leaseLost.WithLabelValues(cause).Inc()
}

// Heartbeat counts one try to extend a lease.
func (r *Recorder) Heartbeat(ok bool) {
	result := resultFailed
	if ok {
		result = resultOK
	}
	r.m.heartbeats.WithLabelValues(result).Inc()
}

// Synced counts files that a pull or a push moved, and their bytes.
func (r *Recorder) Synced(direction, action string, files int, bytes int64) {
	direction = r.lists.directions.label(direction)
	add(r.m.syncFiles.WithLabelValues(direction, r.lists.actions.label(action)), int64(files))
	add(r.m.syncBytes.WithLabelValues(direction), bytes)
}

// Conflict counts a push that lost against another writer.
func (r *Recorder) Conflict() { r.m.conflicts.Inc() }

// LogBytes counts n bytes of output of steps.
func (r *Recorder) LogBytes(n int64) { add(r.m.logBytes, n) }

// LogDropped counts n bytes of output of steps that reach no reader of the events. cause is their label loss.
func (r *Recorder) LogDropped(n int64, cause string) {
	add(r.m.logDropped.WithLabelValues(r.lists.drops.label(cause)), n)
}

// LogKept counts bytes of output of steps: kept of them are in a result or in a stored log, lost of them in neither. cause
// is the label loss of the lost ones.
func (r *Recorder) LogKept(kept, lost int64, cause string) {
	add(r.m.logKept, kept)
	if lost > 0 {
		add(r.m.logLost.WithLabelValues(r.lists.losses.label(cause)), lost)
	}
}

// Leftover counts a removal that failed, after which a box or a volume may be left on the engine.
func (r *Recorder) Leftover() { r.m.leftovers.Inc() }

// Reaped counts n boxes that were removed because their workers are gone.
func (r *Recorder) Reaped(n int) { add(r.m.reaped, int64(n)) }

// Draining records that the worker takes no more jobs. It is final.
func (r *Recorder) Draining() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.draining = true
		r.m.draining.Inc()
	}
}

// IsDraining reports whether Draining was called: a worker that drains is not ready.
func (r *Recorder) IsDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// seconds returns d in seconds, and 0 if d is negative: d may be the difference of two machines' clocks.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

// add adds n if it is positive. A counter panics on a negative number, and a wrong number must not end a worker.
func add(c prometheus.Counter, n int64) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// shared registers c, or returns the collector that an earlier Recorder registered under the same name.
func shared[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	err := reg.Register(c)
	if err == nil {
		return c
	}
	if are := (prometheus.AlreadyRegisteredError{}); errors.As(err, &are) {
		if old, ok := are.ExistingCollector.(C); ok {
			return old
		}
	}
	panic(fmt.Errorf("register slipway's metrics: another part of the program uses the same name: %w", err))
}
