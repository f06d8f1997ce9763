package verdict

import (
	"errors"

	"slipway/job"
)

// The causes that end an attempt's contexts. context.Cause says which it was. job.ErrLeaseLost is one more.
var (
	// ErrSoftStop: the worker stopped, and its soft stop ran out.
	ErrSoftStop = errors.New("the worker stopped before the job's end")
	// ErrKilled: the worker was told to stop at once.
	ErrKilled = errors.New("the worker was told to stop at once")
	// ErrSelfFenced: the worker gave the lease up by itself.
	ErrSelfFenced = errors.New("the lease was not confirmed in time")
	// ErrJobTimeout: the job's clock. Other clocks of the whole job wrap it.
	ErrJobTimeout = errors.New("the job's timeout ran out")
	// ErrCanceled: the first cancel.
	ErrCanceled = errors.New("a user canceled the job")
	// ErrAborted: the second cancel.
	ErrAborted = errors.New("a user aborted the job")
)

// Lost reports whether cause means that the job is not this worker's any more: nothing may be published.
func Lost(cause error) bool {
	return errors.Is(cause, job.ErrLeaseLost) || errors.Is(cause, ErrSelfFenced)
}

// Stopped is the verdict on an attempt that was ended from outside.
func Stopped(cause error) Verdict {
	reason := job.ReasonInternal
	switch {
	case Lost(cause):
		reason = job.ReasonLeaseLost
	case errors.Is(cause, ErrSoftStop), errors.Is(cause, ErrKilled):
		reason = job.ReasonDrained
	case errors.Is(cause, ErrCanceled), errors.Is(cause, ErrAborted):
		reason = job.ReasonCanceledByUser
	case errors.Is(cause, ErrJobTimeout):
		reason = job.ReasonJobTimeout
	}
	return Of(reason, cause.Error())
}
