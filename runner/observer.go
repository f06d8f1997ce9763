package runner

import (
	"time"

	"slipway/job"
)

// Observer is told what a Worker does, to count it. Methods are called from many
// goroutines and must not block. It is made of the words of package job alone, so
// that package metrics satisfies it without knowing this one.
type Observer interface {
	// Slots tells how many slots there are and how many are busy, at each change.
	Slots(total, busy int)
	// JobClaimed: an attempt begins. waited is the time since the job could have begun.
	JobClaimed(queue string, waited time.Duration)
	// PhaseDone: one of the phases pull_image, create, pull_workspace, steps, push_workspace, cleanup ended.
	PhaseDone(phase string, took time.Duration, ok bool)
	// StepDone: a step's last try ended.
	StepDone(status job.StepStatus, took time.Duration)
	// StepRetried: a step is tried again.
	StepRetried()
	// JobDone: a result is committed.
	JobDone(r *job.Result)
	// JobRetried: the attempt ended without a result, and the job went back.
	JobRetried(class job.Class, reason job.Reason)
	// LeaseLost: the attempt was dropped. fenced: the worker decided so by itself, for want of a confirmation.
	LeaseLost(fenced bool)
	// Heartbeat: one extension of a lease was tried.
	Heartbeat(ok bool)
	// Synced: a pull or a push moved files. direction is pull or push; action is added, modified, deleted or restored.
	Synced(direction, action string, files int, bytes int64)
	// Conflict: a push lost against another writer.
	Conflict()
	// LogBytes: that much output came from steps; dropped of them reached no reader of the events.
	LogBytes(n, dropped int64)
	// Leftover: a teardown failed; something may be left on the engine.
	Leftover()
	// Reaped: that many boxes, which other workers or an earlier life of this one left, were removed.
	Reaped(n int)
	// Draining: the worker takes no more jobs.
	Draining()
}

// NopObserver is an Observer that does nothing. Embed it to implement a part.
type NopObserver struct{}

var _ Observer = NopObserver{}

// Slots does nothing, as all methods of NopObserver.
func (NopObserver) Slots(int, int) {}

// JobClaimed does nothing.
func (NopObserver) JobClaimed(string, time.Duration) {}

// PhaseDone does nothing.
func (NopObserver) PhaseDone(string, time.Duration, bool) {}

// StepDone does nothing.
func (NopObserver) StepDone(job.StepStatus, time.Duration) {}

// StepRetried does nothing.
func (NopObserver) StepRetried() {}

// JobDone does nothing.
func (NopObserver) JobDone(*job.Result) {}

// JobRetried does nothing.
func (NopObserver) JobRetried(job.Class, job.Reason) {}

// LeaseLost does nothing.
func (NopObserver) LeaseLost(bool) {}

// Heartbeat does nothing.
func (NopObserver) Heartbeat(bool) {}

// Synced does nothing.
func (NopObserver) Synced(string, string, int, int64) {}

// Conflict does nothing.
func (NopObserver) Conflict() {}

// LogBytes does nothing.
func (NopObserver) LogBytes(int64, int64) {}

// Leftover does nothing.
func (NopObserver) Leftover() {}

// Reaped does nothing.
func (NopObserver) Reaped(int) {}

// Draining does nothing.
func (NopObserver) Draining() {}
