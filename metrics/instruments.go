package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"slipway/job"
)

const namespace = "slipway"

// The values of the labels cause and result.
const (
	causeFenced  = "self_fence" // the worker gave up its attempt: no heartbeat was confirmed for a whole lease
	causeTaken   = "taken"      // another worker owns the job, or its result was decided
	resultOK     = "ok"
	resultFailed = "failed"
)

// buckets reach from a warm step to the longest timeout that a job may have, in seconds.
func buckets() []float64 {
	return []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
		60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600,
	}
}

// instruments holds every metric of a Recorder.
type instruments struct {
	slots, busy, draining                       prometheus.Gauge
	claimed, stepRetries, conflicts             prometheus.Counter
	logBytes, logKept                           prometheus.Counter
	leftovers, reaped                           prometheus.Counter
	jobs, retries, phaseFailures                *prometheus.CounterVec
	leaseLost, heartbeats, syncFiles, syncBytes *prometheus.CounterVec
	logDropped, logLost                         *prometheus.CounterVec
	queueJobs, queueCPU                         *prometheus.CounterVec
	job, phase, step, queueWait, queueJob       *prometheus.HistogramVec
	build                                       *prometheus.GaugeVec
}

func newInstruments() *instruments {
	return &instruments{
		slots:    gauge("slots", "Jobs that the worker can run at once."),
		busy:     gauge("slots_busy", "Jobs that the worker runs now."),
		draining: gauge("draining", "Workers of this process that take no more jobs."),

		claimed:       counter("jobs_claimed_total", "Attempts that began."),
		jobs:          counters("jobs_total", "Jobs with a committed result.", "outcome", "reason"),
		retries:       counters("job_retries_total", "Attempts that ended without a result; the job went back.", "class", "reason"),
		stepRetries:   counter("step_retries_total", "Steps that were tried again."),
		phaseFailures: counters("phase_failures_total", "Phases of an attempt that failed.", "phase"),
		leaseLost:     counters("lease_lost_total", "Attempts dropped since their lease was lost.", "cause"),
		heartbeats:    counters("heartbeats_total", "Tries to extend a lease.", "result"),
		syncFiles:     counters("sync_files_total", "Workspace files that a pull or a push moved.", "direction", "action"),
		syncBytes:     counters("sync_bytes_total", "Bytes of workspace files that a pull or a push moved.", "direction"),
		conflicts:     counter("workspace_conflicts_total", "Pushes that lost against another writer of the workspace."),
		logBytes:      counter("log_bytes_total", "Bytes that steps printed."),
		logDropped:    counters("log_dropped_bytes_total", "Bytes that steps printed and that reach no reader of the events: no live view has them.", "loss"),
		logKept:       counter("log_kept_bytes_total", "Bytes that steps printed and that a result or a stored log has."),
		logLost:       counters("log_lost_bytes_total", "Bytes that steps printed and that neither a result nor a stored log has.", "loss"),
		leftovers:     counter("leftovers_total", "Removals of boxes, or of their volumes, that failed, by an attempt or by the reaper, which tries again: something may be left on the engine."),
		reaped:        counter("reaped_total", "Boxes removed for workers that are gone."),

		queueJobs: counters("queue_jobs_total", "Jobs with a committed result, by their queue.", "queue", "outcome"),
		queueCPU:  counters("queue_cpu_seconds_total", "Processor time of the steps of jobs with a committed result, by their queue.", "queue"),
		queueWait: prometheus.NewHistogramVec(histogram("queue_wait_seconds", "Time from when a job could begin to its claim."), []string{"queue"}),
		queueJob:  prometheus.NewHistogramVec(histogram("queue_job_duration_seconds", "Time from a job's claim to its result, by its queue."), []string{"queue"}),
		job:       prometheus.NewHistogramVec(histogram("job_duration_seconds", "Time from a job's claim to its result."), []string{"outcome"}),
		phase:     prometheus.NewHistogramVec(histogram("phase_duration_seconds", "Time that the phases of an attempt take."), []string{"phase"}),
		step:      prometheus.NewHistogramVec(histogram("step_duration_seconds", "Time that the last try of a step takes."), []string{"status"}),

		build: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "Always 1. The labels say what was built.",
		}, []string{"version", "revision", "go_version"}),
	}
}

// register registers the metrics with reg. A metric that an earlier Recorder registered is used in
// place of the new one.
func (m *instruments) register(reg prometheus.Registerer) {
	for _, g := range []*prometheus.Gauge{&m.slots, &m.busy, &m.draining} {
		*g = shared(reg, *g)
	}
	for _, c := range []*prometheus.Counter{
		&m.claimed, &m.stepRetries, &m.conflicts, &m.logBytes, &m.logKept, &m.leftovers, &m.reaped,
	} {
		*c = shared(reg, *c)
	}
	for _, v := range []**prometheus.CounterVec{
		&m.jobs, &m.retries, &m.phaseFailures, &m.leaseLost, &m.heartbeats, &m.syncFiles, &m.syncBytes, &m.logDropped, &m.logLost,
		&m.queueJobs, &m.queueCPU,
	} {
		*v = shared(reg, *v)
	}
	for _, h := range []**prometheus.HistogramVec{&m.job, &m.phase, &m.step, &m.queueWait, &m.queueJob} {
		*h = shared(reg, *h)
	}
	m.build = shared(reg, m.build)
}

// initialize makes every series of the closed lists, with the value 0.
func (m *instruments) initialize(l lists) {
	m.jobs.WithLabelValues(string(job.Succeeded), none)
	for _, r := range job.Reasons() {
		m.jobs.WithLabelValues(string(r.Outcome()), string(r))
		if c := r.Class(); c != job.ClassNone {
			m.retries.WithLabelValues(string(c), string(r))
		}
	}
	for _, o := range l.outcomes {
		m.job.WithLabelValues(o)
	}
	for _, q := range l.queues {
		m.queueWait.WithLabelValues(q)
		m.queueJob.WithLabelValues(q)
		m.queueCPU.WithLabelValues(q)
		for _, o := range l.outcomes {
			m.queueJobs.WithLabelValues(q, o)
		}
	}
	for _, p := range l.phases {
		m.phase.WithLabelValues(p)
		m.phaseFailures.WithLabelValues(p)
	}
	for _, s := range l.statuses {
		m.step.WithLabelValues(s)
	}
	for _, d := range l.directions {
		m.syncBytes.WithLabelValues(d)
		for _, a := range l.actions {
			m.syncFiles.WithLabelValues(d, a)
		}
	}
	for _, v := range []string{causeFenced, causeTaken} {
		m.leaseLost.WithLabelValues(v)
	}
	for _, v := range l.drops {
		m.logDropped.WithLabelValues(v)
	}
	for _, v := range l.losses {
		m.logLost.WithLabelValues(v)
	}
	for _, v := range []string{resultOK, resultFailed} {
		m.heartbeats.WithLabelValues(v)
	}
	m.build.WithLabelValues(buildInfo()...).Set(1)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets()}
}

// buildInfo returns the values of build_info's labels. What the binary does not record is "unknown".
func buildInfo() []string {
	version, revision := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return []string{version, revision, runtime.Version()}
}
