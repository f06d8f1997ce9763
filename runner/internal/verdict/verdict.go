package verdict

import (
	"errors"
	"fmt"
	"time"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/job"
	wsync "slipway/sync"
)

// Verdict is how an attempt ended, before anybody decided whether there is another one.
type Verdict struct {
	Outcome job.Outcome
	Reason  job.Reason
	Message string
	// Final: another attempt would end the same way, whatever the reason's class says.
	Final bool
}

// Success is the verdict on what went well.
func Success() Verdict { return Verdict{Outcome: job.Succeeded} }

// Of makes the verdict with a reason and its outcome.
func Of(reason job.Reason, message string) Verdict {
	return Verdict{Outcome: reason.Outcome(), Reason: reason, Message: message}
}

// Judge turns an error into a verdict. cause is why the attempt was stopped, nil if it was not: an error of something
// that was stopped says nothing. otherwise is the reason of an error that no contract knows.
func Judge(err, cause error, otherwise job.Reason) Verdict {
	if cause != nil {
		return Stopped(cause)
	}
	v := Of(reasonOf(err, otherwise), hint.Text(err))
	var f *Fault
	if errors.As(err, &f) {
		v = Of(f.Reason, v.Message)
		v.Final = f.Final
	}
	if errors.Is(err, wsync.ErrMassDelete) {
		v.Final = true // the same steps would delete the same files again
		v.Message += "; a job that means to replace the workspace says workspace.pull: never"
	}
	return v
}

// Earlier is the verdict on a job to which two things happened, a before b: what happened first counts, except that a
// cancel is always told as one.
func Earlier(a, b Verdict) Verdict {
	if a.Outcome == job.Succeeded || b.Outcome == job.Canceled {
		return b
	}
	return a
}

// reasonBySentinel maps the sentinels of the contracts, wherever they come from. The first match counts.
var reasonBySentinel = []struct {
	is     error
	reason job.Reason
}{
	{job.ErrLeaseLost, job.ReasonLeaseLost},
	{container.ErrDenied, job.ReasonPolicyDenied},
	{container.ErrUnsupported, job.ReasonPolicyDenied},
	{container.ErrSpec, job.ReasonSpecInvalid},
	{container.ErrImageNotFound, job.ReasonImageNotFound},
	{container.ErrImageAuth, job.ReasonImageAuth},
	{container.ErrImagePull, job.ReasonImagePull},
	{container.ErrEngineUnavailable, job.ReasonEngineUnavailable},
	{container.ErrBoxOOM, job.ReasonOOM}, // these three come with ErrBoxLost
	{container.ErrBoxEnded, job.ReasonExit},
	{container.ErrStuck, job.ReasonStepTimeout},
	{container.ErrBoxLost, job.ReasonBoxLost},
	{container.ErrStopped, job.ReasonBoxLost},
	{container.ErrNoSpace, job.ReasonDisk},
	{wsync.ErrConflict, job.ReasonWorkspaceConflict},
	{wsync.ErrTooLarge, job.ReasonDisk}, // the job's doing: another attempt would make as much
}

// reasonOf maps an error to the closed list.
func reasonOf(err error, otherwise job.Reason) job.Reason {
	for _, known := range reasonBySentinel {
		if errors.Is(err, known.is) {
			return known.reason
		}
	}
	return otherwise
}

// Fault is an error that knows its reason.
type Fault struct {
	Reason job.Reason
	Final  bool // another attempt would end the same way
	Err    error
}

// Error is the text of Err.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// Timeout is a clock of a phase or a step that ran out.
type Timeout struct {
	What  string // "the pull of the image (PullTimeout)"
	Limit time.Duration
}

// Error says what took how long.
func (e *Timeout) Error() string { return fmt.Sprintf("%s took longer than %s", e.What, e.Limit) }
