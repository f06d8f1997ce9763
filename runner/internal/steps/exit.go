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
		status, reason, message := stepStopped(cause)
		return status, reason, beside(message, e)
	case e.TimedOut:
		return job.StepTimedOut, job.ReasonStepTimeout, beside("the step's timeout ran out", e)
	case e.Code == 0 && e.OOM:
		return job.StepSucceeded, "", "a process of this step was killed for memory, but the command succeeded"
	case e.Code == 0:
		return job.StepSucceeded, "", ""
	case e.OOM:
		return job.StepFailed, job.ReasonOOM, "a process of this step was killed for memory; ask for more with resources.memory"
	case e.Unwatched:
		return job.StepFailed, job.ReasonExit, "a process of this step, which runs as the supervisor's own user, ended the supervisor that watches over it: a step must signal only what it has started"
	case e.Pids:
		return job.StepFailed, job.ReasonPids, "the box was at its limit of processes and threads while this step ran; ask for more with resources.pids"
	case e.Error != "":
		return job.StepFailed, job.ReasonExit, e.Error
	}
	return job.StepFailed, job.ReasonExit, ""
}

// beside adds to why a command was ended what else happened to it: it may be why the command took so long.
func beside(why string, e container.Exit) string {
	if e.OOM {
		why += "; a process of it was killed for memory (resources.memory)"
	}
	if e.Pids {
		why += "; the box was at its limit of processes and threads (resources.pids)"
	}
	return why
}

// adviseShell adds to the message of a script that did not start what to do about its shell.
func adviseShell(s *job.Step, e container.Exit, message string) string {
	if s.Kind() != job.KindRun || e.Error == "" || e.Code != codeNotFound || message != e.Error {
		return message
	}
	if len(s.Shell) == 0 {
		return "the image has no /bin/sh that works (" + e.Error + "): use command, which needs none, or name another shell with shell"
	}
	return e.Error + ": name a shell that the image has with shell, or use command, which needs none"
}

// codeNotFound is container.Exit's for a program that is missing.
const codeNotFound = 127

// statusOf is the status of a step that was interrupted by what makes the job end so.
func statusOf(o job.Outcome) job.StepStatus {
	switch o {
	case job.Failed:
		return job.StepFailed
	case job.TimedOut:
		return job.StepTimedOut
	}
	return job.StepErrored
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
