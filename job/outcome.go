package job

import "slices"

// Outcome says how a job ended. The list is closed and part of the wire format:
// it appears in results, in the JSON Schema and as a metric label.
type Outcome string

// The outcomes.
const (
	// Succeeded: every step that had to succeed did, and the workspace was pushed if asked for.
	Succeeded Outcome = "succeeded"
	// Failed: the job's own command failed.
	Failed Outcome = "failed"
	// TimedOut: the step's or the job's clock ran out.
	TimedOut Outcome = "timed_out"
	// Canceled: a user asked for it.
	Canceled Outcome = "canceled"
	// Errored: slipway, its surroundings or the spec prevented the job from running to its end.
	Errored Outcome = "errored"
)

// Outcomes lists every Outcome in the order of their documentation.
func Outcomes() []Outcome {
	return []Outcome{Succeeded, Failed, TimedOut, Canceled, Errored}
}

// Valid reports whether o is one of Outcomes.
func (o Outcome) Valid() bool { return slices.Contains(Outcomes(), o) }

// Reason says why a job ended as it did. The list is closed and part of the wire
// format. A succeeded job has the empty Reason.
type Reason string

// The reasons. Beside each stands the Outcome that it belongs to.
const (
	ReasonExit              Reason = "exit"               // failed: a step's command ended with a code other than 0 or ended its own supervisor, or the file of a step can't be had
	ReasonStepTimeout       Reason = "step_timeout"       // timed_out: a step's own timeout
	ReasonJobTimeout        Reason = "job_timeout"        // timed_out: the job's timeout
	ReasonOOM               Reason = "oom"                // failed: the kernel killed a process of the step, or the whole box, for memory
	ReasonPids              Reason = "pids"               // failed: a step failed while the box was at its limit of processes and threads
	ReasonDisk              Reason = "disk"               // failed: the workspace hit its size limit
	ReasonLogLimit          Reason = "log_limit"          // failed: the job printed more than it may; not given by this version
	ReasonSpecInvalid       Reason = "spec_invalid"       // errored: the queue held something that is no valid job
	ReasonPolicyDenied      Reason = "policy_denied"      // errored: the worker's policy does not allow what the job asks for
	ReasonImageNotFound     Reason = "image_not_found"    // errored: no such image
	ReasonImageAuth         Reason = "image_auth"         // errored: the registry refused the credentials
	ReasonImagePull         Reason = "image_pull"         // errored: the image could not be pulled
	ReasonEngineUnavailable Reason = "engine_unavailable" // errored: the container engine does not answer
	ReasonBoxLost           Reason = "box_lost"           // errored: the box ended although nobody asked for it
	ReasonWorkspacePull     Reason = "workspace_pull"     // errored: the workspace could not be restored
	ReasonInput             Reason = "input"              // errored: an input could not be put into the workspace
	ReasonWorkspacePush     Reason = "workspace_push"     // errored: the workspace could not be saved
	ReasonWorkspaceConflict Reason = "workspace_conflict" // errored: somebody else changed the workspace meanwhile
	ReasonLeaseLost         Reason = "lease_lost"         // errored: another worker owns the job now
	ReasonDrained           Reason = "drained"            // errored: the worker stopped before the job's end
	ReasonCrashBudget       Reason = "crash_budget"       // errored: too many workers died on this job
	ReasonInfraBudget       Reason = "infra_budget"       // errored: too many infrastructure failures
	ReasonExpired           Reason = "expired"            // errored: not started before expires_at; not given by this version
	ReasonCanceledByUser    Reason = "canceled_by_user"   // canceled: a user asked for it
	ReasonLimitSteps        Reason = "limit_steps"        // failed: the model loop's step limit; not given by this version
	ReasonLimitCost         Reason = "limit_cost"         // failed: the model loop's cost limit; not given by this version
	ReasonLimitTokens       Reason = "limit_tokens"       // failed: the model loop's token limit; not given by this version
	ReasonLimitWall         Reason = "limit_wall"         // failed: the model loop's wall clock limit; not given by this version
	ReasonLimitFailures     Reason = "limit_failures"     // failed: too many decisions in a row on what to do next could not be used; never with a job's own steps
	ReasonLimitStuck        Reason = "limit_stuck"        // failed: the model loop repeats itself; not given by this version
	ReasonInternal          Reason = "internal"           // errored: a defect of slipway
)

// Reasons lists every Reason in the order of their documentation.
func Reasons() []Reason {
	return []Reason{
		ReasonExit, ReasonStepTimeout, ReasonJobTimeout, ReasonOOM, ReasonPids, ReasonDisk, ReasonLogLimit,
		ReasonSpecInvalid, ReasonPolicyDenied, ReasonImageNotFound, ReasonImageAuth, ReasonImagePull,
		ReasonEngineUnavailable, ReasonBoxLost, ReasonWorkspacePull, ReasonInput, ReasonWorkspacePush,
		ReasonWorkspaceConflict, ReasonLeaseLost, ReasonDrained, ReasonCrashBudget, ReasonInfraBudget,
		ReasonExpired, ReasonCanceledByUser, ReasonLimitSteps, ReasonLimitCost, ReasonLimitTokens,
		ReasonLimitWall, ReasonLimitFailures, ReasonLimitStuck, ReasonInternal,
	}
}

// Valid reports whether r is empty or one of Reasons.
func (r Reason) Valid() bool { return r == "" || slices.Contains(Reasons(), r) }

// Outcome returns the outcome that goes with r: each reason has one. The empty
// reason is that of success.
func (r Reason) Outcome() Outcome {
	switch r {
	case "":
		return Succeeded
	case ReasonStepTimeout, ReasonJobTimeout:
		return TimedOut
	case ReasonCanceledByUser:
		return Canceled
	case ReasonExit, ReasonOOM, ReasonPids, ReasonDisk, ReasonLogLimit, ReasonLimitSteps, ReasonLimitCost,
		ReasonLimitTokens, ReasonLimitWall, ReasonLimitFailures, ReasonLimitStuck:
		return Failed
	default:
		return Errored
	}
}

// Class is the budget that pays for another attempt. Each class has a budget of its own, so
// that a flaky registry does not use up a job's retries.
type Class string

// The classes of failure.
const (
	// ClassNone: the result stands; no other attempt would change it.
	ClassNone Class = "none"
	// ClassJob: the job's own failure; retried as often as the job's retry field says.
	ClassJob Class = "job"
	// ClassInfra: the engine, the registry, the store; retried with growing delay up to the infrastructure budget.
	ClassInfra Class = "infra"
	// ClassCrash: the worker died; counted by the next one that claims the job.
	ClassCrash Class = "crash"
	// ClassShutdown: the worker stops; costs nothing.
	ClassShutdown Class = "shutdown"
)

// Class returns the class of failure that r belongs to.
func (r Reason) Class() Class {
	switch r {
	case ReasonExit, ReasonStepTimeout, ReasonJobTimeout, ReasonOOM, ReasonPids, ReasonDisk, ReasonLogLimit:
		return ClassJob
	case ReasonImagePull, ReasonEngineUnavailable, ReasonBoxLost, ReasonWorkspacePull, ReasonInput, ReasonWorkspacePush,
		ReasonWorkspaceConflict, ReasonInternal:
		return ClassInfra
	case ReasonDrained:
		return ClassShutdown
	default:
		return ClassNone
	}
}

// Dead reports whether a job that ended for r is kept as a dead letter, to be
// inspected and put back by a person.
func (r Reason) Dead() bool {
	return r == ReasonCrashBudget || r == ReasonInfraBudget
}
