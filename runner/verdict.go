package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/job"
	wsync "slipway/sync"
)

// The causes that end an attempt's contexts. Each is one of the clocks or one of
// the people that can stop a job; context.Cause says which it was.
var (
	// ErrSoftStop: the worker stopped, and Config.SoftStop ran out.
	ErrSoftStop = errors.New("the worker stopped before the job's end")
	// ErrKilled: Worker.Kill was called.
	ErrKilled = errors.New("the worker was told to stop at once")

	errSelfFenced = errors.New("the lease was not confirmed in time")
	errJobTimeout = errors.New("the job's timeout ran out")
	errCanceled   = errors.New("a user canceled the job")
	errAborted    = errors.New("a user aborted the job")
	errEndingTime = fmt.Errorf("the steps that always run took longer than %s in all", EndingTime)
)

// verdict is how an attempt ended, before anybody decided whether there is another one.
type verdict struct {
	outcome job.Outcome
	reason  job.Reason
	message string
	// final: another attempt would end the same way, whatever the reason's class says.
	final bool
}

// fault is an error that knows its reason.
type fault struct {
	reason job.Reason
	final  bool
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// timeoutError is a clock of a phase that ran out.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s took longer than %s", e.what, e.limit) }

// judge turns the error of a phase into a verdict. cause is why the attempt was
// stopped, nil if it was not: an error of something that was stopped says nothing.
func judge(phase string, err, cause error) verdict {
	if cause != nil {
		return stopped(cause)
	}
	v := verdict{reason: reasonOf(phase, err), message: hint.Text(err)}
	var f *fault
	if errors.As(err, &f) {
		v.reason, v.final = f.reason, f.final
	}
	if errors.Is(err, wsync.ErrMassDelete) {
		v.final = true // the same steps would delete the same files again
		v.message += "; a job that means to replace the workspace says workspace.pull: never"
	}
	v.outcome = v.reason.Outcome()
	return v
}

// stopped is the verdict on an attempt that was ended from outside.
func stopped(cause error) verdict {
	reason := job.ReasonInternal
	switch {
	case errors.Is(cause, job.ErrLeaseLost), errors.Is(cause, errSelfFenced):
		reason = job.ReasonLeaseLost
	case errors.Is(cause, ErrSoftStop), errors.Is(cause, ErrKilled):
		reason = job.ReasonDrained
	case errors.Is(cause, errCanceled), errors.Is(cause, errAborted):
		reason = job.ReasonCanceledByUser
	case errors.Is(cause, errJobTimeout), errors.Is(cause, errEndingTime):
		reason = job.ReasonJobTimeout
	}
	return verdict{outcome: reason.Outcome(), reason: reason, message: cause.Error()}
}

// known maps the sentinels of the contracts, whatever phase they come from. The
// first match counts.
var known = []struct {
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
	{container.ErrBoxLost, job.ReasonBoxLost},
	{container.ErrStopped, job.ReasonBoxLost},
	{container.ErrNoSpace, job.ReasonDisk},
	{wsync.ErrConflict, job.ReasonWorkspaceConflict},
	{wsync.ErrTooLarge, job.ReasonDisk}, // the job's doing: another attempt would make as much
}

// byPhase is the reason of an error that no contract knows.
var byPhase = map[string]job.Reason{
	phasePullImage:     job.ReasonImagePull,
	phaseCreate:        job.ReasonEngineUnavailable,
	phasePullWorkspace: job.ReasonWorkspacePull,
	phasePushWorkspace: job.ReasonWorkspacePush,
}

// reasonOf maps an error of a phase to the closed list.
func reasonOf(phase string, err error) job.Reason {
	for _, k := range known {
		if errors.Is(err, k.is) {
			return k.reason
		}
	}
	if r, ok := byPhase[phase]; ok {
		return r
	}
	return job.ReasonInternal
}

// judgeExit says how a command's end counts. cause is why the command's context
// ended; nil if it did not. Nothing but an Exit makes a success.
func judgeExit(e container.Exit, cause error) (job.StepStatus, job.Reason, string) {
	switch {
	case e.Canceled:
		return stepStopped(cause)
	case e.TimedOut:
		return job.StepTimedOut, job.ReasonStepTimeout, "the step's timeout ran out"
	case e.Code == 0 && e.OOM:
		return job.StepSucceeded, "", "a process of this step was killed for memory, but the command succeeded"
	case e.Code == 0:
		return job.StepSucceeded, "", ""
	case e.OOM:
		return job.StepFailed, job.ReasonOOM, "a process of this step was killed for memory; ask for more with resources.memory"
	case e.Error != "":
		return job.StepFailed, job.ReasonExit, e.Error
	}
	return job.StepFailed, job.ReasonExit, ""
}

// stepStopped says how a step counts that was ended from outside.
func stepStopped(cause error) (job.StepStatus, job.Reason, string) {
	if cause == nil {
		cause = context.Canceled
	}
	var t *timeoutError
	if errors.As(cause, &t) {
		return job.StepTimedOut, job.ReasonStepTimeout, t.Error()
	}
	v := stopped(cause)
	status := job.StepCanceled
	switch v.outcome {
	case job.TimedOut:
		status = job.StepTimedOut
	case job.Errored:
		if v.reason == job.ReasonInternal {
			status = job.StepErrored
		}
	}
	return status, v.reason, v.message
}

// fileErrors are the errors of container.Files that are the job's own doing.
var fileErrors = []error{
	container.ErrNotFound, container.ErrNotRegular, container.ErrPath, container.ErrPermission,
	container.ErrTooLarge, container.ErrExists,
}

// judgeFile says how a file action's error counts. known is false for an error
// of the machinery, which says nothing about the step.
func judgeFile(err error) (reason job.Reason, known bool) {
	if errors.Is(err, container.ErrNoSpace) {
		return job.ReasonDisk, true
	}
	for _, e := range fileErrors {
		if errors.Is(err, e) {
			return job.ReasonExit, true
		}
	}
	return "", false
}

// stepVerdict is the verdict on a job whose step r failed.
func stepVerdict(r job.StepResult) verdict {
	v := verdict{reason: r.Reason, outcome: r.Reason.Outcome()}
	switch {
	case r.Message != "":
		v.message = fmt.Sprintf("step %q: %s", r.Name, r.Message)
	case r.Signal != "":
		v.message = fmt.Sprintf("step %q was ended by %s", r.Name, r.Signal)
	case r.ExitCode != nil:
		v.message = fmt.Sprintf("step %q ended with exit code %d", r.Name, *r.ExitCode)
	default:
		v.message = fmt.Sprintf("step %q failed", r.Name)
	}
	return v
}
