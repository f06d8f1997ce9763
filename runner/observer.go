package runner

import (
	"time"

	"slipway/job"
)

// Observer is told what a Worker does, to count it. Its methods are called from many goroutines and must neither block nor panic.
// They use the words of package job alone, so that package metrics satisfies the interface without knowing this package.
type Observer interface {
	// Slots tells how many slots there are and how many are busy, at each change.
	Slots(total, busy int)
	// JobClaimed tells that an attempt begins. waited is the time since the job could have begun.
	JobClaimed(queue string, waited time.Duration)
	// PhaseDone tells that a phase ended: pull_image, create, pull_workspace, steps, push_workspace or cleanup. ok is
	// false if it failed.
	PhaseDone(phase string, took time.Duration, ok bool)
	// StepDone tells that the last try of a step ended, and how long that try took.
	StepDone(status job.StepStatus, took time.Duration)
	// StepRetried tells that a step is tried again.
	StepRetried()
	// JobDone tells that r was committed.
	JobDone(r *job.Result)
	// JobRetried tells that an attempt ended without a result, and that the job went back into the queue.
	JobRetried(class job.Class, reason job.Reason)
	// LeaseLost tells that an attempt was dropped. fenced is true if the worker gave up by itself, because the queue
	// did not confirm the lease in time.
	LeaseLost(fenced bool)
	// Heartbeat tells that one extension of a lease was tried.
	Heartbeat(ok bool)
	// Synced tells that a pull or a push moved files. direction is pull or push; action is added, modified, deleted or restored.
	Synced(direction, action string, files int, bytes int64)
	// Conflict tells that a push lost against another writer.
	Conflict()
	// LogBytes tells that steps printed n bytes.
	LogBytes(n int64)
	// LogDropped tells that n of these bytes reach no reader of the events, and why: limit, slow, queue or box; the glossary
	// of package metrics explains them.
	LogDropped(n int64, cause string)
	// LogKept tells that of what steps printed, kept bytes are in a result or in the store, and lost bytes in neither. cause
	// says why they are lost: limit, no_store, store, disk, try or box; the glossary of package metrics explains them. All calls add up to
	// what LogBytes tells as printed, once an attempt is over.
	LogKept(kept, lost int64, cause string)
	// Leftover tells that the removal of a box, or of what is left of one, failed, by its attempt or by the reaper:
	// something may be left on the engine. The reaper tries again, and tells it again.
	Leftover()
	// Reaped tells that n boxes were removed that other workers, or an earlier life of this one, had left.
	Reaped(n int)
	// Draining tells that the worker takes no more jobs.
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
func (NopObserver) LogBytes(int64) {}

// LogDropped does nothing.
func (NopObserver) LogDropped(int64, string) {}

// LogKept does nothing.
func (NopObserver) LogKept(int64, int64, string) {}

// Leftover does nothing.
func (NopObserver) Leftover() {}

// Reaped does nothing.
func (NopObserver) Reaped(int) {}

// Draining does nothing.
func (NopObserver) Draining() {}
