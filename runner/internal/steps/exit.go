package steps

import (
	"context"
	"errors"
	"fmt"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/verdict"
)

// judgeExit says how a command's end counts. cause is why the command's context ended; nil if it did not. Nothing but an
// Exit makes a success.
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
	var t *verdict.Timeout
	if errors.As(cause, &t) {
		return job.StepTimedOut, job.ReasonStepTimeout, t.Error()
	}
	v := verdict.Stopped(cause)
	status := job.StepCanceled
	switch v.Outcome {
	case job.TimedOut:
		status = job.StepTimedOut
	case job.Errored:
		if v.Reason == job.ReasonInternal {
			status = job.StepErrored
		}
	}
	return status, v.Reason, v.Message
}

// failed reports whether r counts as a failure. A step that was ended from outside is judged by what ended it.
func failed(r job.StepResult) bool {
	return r.Status == job.StepFailed || r.Status == job.StepTimedOut
}

// ofStep is the verdict on a job whose step r failed.
func ofStep(r job.StepResult) verdict.Verdict {
	switch {
	case r.Message != "":
		return verdict.Of(r.Reason, fmt.Sprintf("step %q: %s", r.Name, r.Message))
	case r.Signal != "":
		return verdict.Of(r.Reason, fmt.Sprintf("step %q was ended by %s", r.Name, r.Signal))
	case r.ExitCode != nil:
		return verdict.Of(r.Reason, fmt.Sprintf("step %q ended with exit code %d", r.Name, *r.ExitCode))
	}
	return verdict.Of(r.Reason, fmt.Sprintf("step %q failed", r.Name))
}
