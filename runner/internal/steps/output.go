package steps

import (
	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/excerpt"
)

// output takes what one try of a step prints. It is used from one goroutine.
type output struct {
	step     int
	excerpt  *excerpt.Excerpt
	observed *excerpt.Excerpt // nil: the Decider is told what the result keeps
	log      *spool           // nil until the excerpt has to leave something out
	limit    int64            // of the log; 0: no log is kept
	unlogged string           // why no log is kept
	cause    string           // the same for Observer.LogKept
	missing  int64            // bytes that the box counted and that did not arrive
	events   Events
}

func (x *Executor) newOutput(step int) *output {
	o := &output{step: step, excerpt: excerpt.New(x.excerpt), events: x.cfg.Events}
	o.limit, o.cause = min(x.cfg.Logs.Limit, x.logs.budget), LostLimit
	switch {
	case x.cfg.Logs.Store == nil:
		o.limit, o.unlogged, o.cause = 0, "the worker has no store", LostNoStore
	case o.limit < int64(2*x.excerpt): // the result keeps as much
		o.limit, o.unlogged = 0, "the worker's limit for the logs of a job leaves no room for it"
	}
	if x.cfg.Observation > 0 {
		o.observed = excerpt.New(x.cfg.Observation)
	}
	return o
}

// write takes one piece. It never waits for a reader.
func (o *output) write(s container.Stream, p []byte) {
	if o.log == nil && o.excerpt.Overflows(len(p)) {
		o.beginLog()
	}
	if o.log != nil {
		o.log.write(p)
	}
	o.excerpt.Write(p)
	if o.observed != nil {
		o.observed.Write(p)
	}
	o.events.Output(o.step, s.String(), p)
}

// beginLog begins the log with what was printed so far, all of which the excerpt has.
func (o *output) beginLog() {
	if o.limit > 0 {
		o.log = newSpool(o.limit)
		o.log.write(o.excerpt.Whole())
	}
}

// gapCause says why the log has a gap.
func (o *output) gapCause() string {
	if o.log.broken {
		return LostDisk
	}
	return LostLimit
}

// result is what the job's result keeps. said is what the box says of the output.
func (o *output) result(said job.Output) job.Output {
	own := o.excerpt.Output()
	if own.Elided > 0 && o.log == nil {
		o.beginLog() // it is short, and takes more room in JSON than a result has for it
	}
	if o.missing = max(said.Bytes-own.Bytes, 0); o.missing > 0 {
		o.events.Missing(o.step, o.missing)
	}
	return reconcile(own, said)
}

// observation is what the Decider is told, given what the result keeps.
func (o *output) observation(result job.Output) job.Output {
	if o.observed == nil {
		return result
	}
	return reconcile(o.observed.Output(), result)
}

// reconcile puts into o what only the box knows. Bytes that did not arrive here count as elided.
func reconcile(o, said job.Output) job.Output {
	if lost := said.Bytes - o.Bytes; lost > 0 {
		o.Bytes, o.Elided = said.Bytes, o.Elided+lost
	}
	o.Cut = said.Cut
	return o
}

// stdout makes o an io.Writer, for what a file action prints.
type stdout struct{ o *output }

func (w stdout) Write(p []byte) (int, error) {
	w.o.write(container.Stdout, p)
	return len(p), nil
}
