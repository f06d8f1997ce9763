package job

import (
	"fmt"
	"slices"
	"time"
)

// Result is the one record of how a job ended. It is written once per
// generation, by the worker that won the commit, and never changes.
type Result struct {
	Version    string            `json:"version"`
	JobID      ID                `json:"job_id"`
	Generation int               `json:"generation"`
	Name       string            `json:"name,omitempty"`
	Queue      string            `json:"queue"`
	Labels     map[string]string `json:"labels,omitempty"`

	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason,omitempty"`
	// Message is one sentence for people: what failed, and what to do about it where slipway knows.
	Message string `json:"message,omitempty"`

	// Attempt counts executions from 1. Zero means that the job never started.
	Attempt int    `json:"attempt"`
	Fence   uint64 `json:"fence"`
	Worker  string `json:"worker,omitempty"`
	// BoxID is the engine's id of the container.
	BoxID string `json:"box_id,omitempty"`
	// ImageDigest is what the image's name meant when the box was made.
	ImageDigest string `json:"image_digest,omitempty"`
	// Relaxed lists the keys of the worker's policy that this job made use of.
	Relaxed []string `json:"relaxed,omitempty"`
	// Store says where the objects of this result lie, logs and workspace, in the words of the worker's owner. Empty if they
	// told the worker none.
	Store string `json:"store,omitempty"`

	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at"`
	Phases      Phases    `json:"phases"`

	// Steps are in order. Those of a job's own are all there; where something else decides the steps, and there are many,
	// those in the middle are left out.
	Steps []StepResult `json:"steps,omitempty"`
	// StepsElided is how many steps were left out.
	StepsElided int              `json:"steps_elided,omitempty"`
	Workspace   *WorkspaceResult `json:"workspace,omitempty"`
}

// Phases says where the attempt's time went. A phase that did not happen is zero. The phase cleanup, the removal of the box,
// ends after the result is written, so it is in the metrics only.
type Phases struct {
	Queue         Duration `json:"queue"`          // from submit (or not_before) to claim
	PullImage     Duration `json:"pull_image"`     // until the image is there
	Create        Duration `json:"create"`         // until the box answers
	PullWorkspace Duration `json:"pull_workspace"` // restore, inputs included
	Steps         Duration `json:"steps"`          // first step's start to last step's end
	PushWorkspace Duration `json:"push_workspace"` // until the new head is written
}

// StepStatus says how a step ended.
type StepStatus string

// The statuses of a step.
const (
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed"
	StepTimedOut  StepStatus = "timed_out"
	StepCanceled  StepStatus = "canceled"
	StepErrored   StepStatus = "errored" // slipway could not run it, or lost it
	StepSkipped   StepStatus = "skipped"
)

// stepStatuses lists every StepStatus.
func stepStatuses() []StepStatus {
	return []StepStatus{StepSucceeded, StepFailed, StepTimedOut, StepCanceled, StepErrored, StepSkipped}
}

// Valid reports whether s is one of the constants StepSucceeded to StepSkipped.
func (s StepStatus) Valid() bool { return slices.Contains(stepStatuses(), s) }

// StepResult is what one step did. Its times are those of all its tries, everything else is what the last one did.
type StepResult struct {
	Index int    `json:"index"` // from 0
	Name  string `json:"name"`
	// Title is the beginning of what the step does, for a step whose name is only its number.
	Title  string     `json:"title,omitempty"`
	Status StepStatus `json:"status"`
	Reason Reason     `json:"reason,omitempty"`
	// Message explains what no exit code can say, such as "no such file".
	Message string `json:"message,omitempty"`
	// ExitCode is the command's own, or 128+signal. Nil where no command ended by itself or by a signal.
	ExitCode *int `json:"exit_code,omitempty"`
	// Signal is the name of the signal that ended the command, such as "SIGKILL".
	Signal string `json:"signal,omitempty"`
	// Tries counts from 1; more than 1 only with the step's retry.
	Tries int `json:"tries,omitempty"`
	// StartedAt is the start of the first try.
	StartedAt time.Time `json:"started_at,omitzero"`
	// FinishedAt is the end of the last try.
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Duration is the monotonic time from StartedAt to FinishedAt, the delays between the tries included.
	Duration Duration `json:"duration"`
	// CPU is user and system time of the step's whole process tree.
	CPU Duration `json:"cpu"`
	// MaxRSS is the largest resident size of a process of the tree, in bytes.
	MaxRSS int64 `json:"max_rss"`
	// Leftovers counts the processes that the step's command left running and that were ended.
	Leftovers int    `json:"leftovers,omitempty"`
	Output    Output `json:"output,omitzero"`
}

// Output is the beginning and the end of what a step printed, stdout and stderr
// as they came, as valid UTF-8. Control characters and escape sequences are in it: who shows it on a terminal cleans it.
type Output struct {
	Head string `json:"head,omitempty"`
	// Elided is the exact number of bytes between Head and Tail.
	Elided int64  `json:"elided,omitempty"`
	Tail   string `json:"tail,omitempty"`
	// Bytes is how much the step printed in all.
	Bytes int64 `json:"bytes"`
	// LogKey names the object in the store that holds the log, if it was stored: the bytes as the step printed them.
	LogKey string `json:"log_key,omitempty"`
	// Truncated is the exact number of bytes that the log at LogKey leaves out between its beginning and its end, since the
	// step or the job went over the worker's limit.
	Truncated int64 `json:"truncated,omitempty"`
	// TruncatedLines is how many line ends are among these bytes.
	TruncatedLines int64 `json:"truncated_lines,omitempty"`
	// TruncatedAt is where in the log they are missing, in bytes. A line that LogGap makes stands there in their place.
	TruncatedAt int64 `json:"truncated_at,omitempty"`
	// NotStored says why the log was not stored although Head and Tail are not all of it, such as "the worker has no store".
	NotStored string `json:"not_stored,omitempty"`
	// Cut: processes that the step's command left running were ended while more output could come.
	Cut bool `json:"cut,omitempty"`
}

// LogGap is the line that stands in a stored log for n bytes with so many line ends that it leaves out. If the bytes before
// the gap end within a line, a line end of its own comes before it.
func LogGap(n, lines int64) string {
	return fmt.Sprintf("[slipway left out %d bytes with %d line ends]\n", n, lines)
}

// WorkspaceResult says what happened to the workspace.
type WorkspaceResult struct {
	Prefix string `json:"prefix"`
	// Base is the commit that was restored. Empty for a new workspace.
	Base string `json:"base,omitempty"`
	// Commit is the state that the store holds now because of this attempt: the new one, or Base if nothing changed.
	Commit string `json:"commit,omitempty"`

	// NotSaved says why what the steps changed was not saved, such as "push: on_success". Empty if it was, or if no step ran.
	NotSaved string `json:"not_saved,omitempty"`

	FilesPulled  int   `json:"files_pulled"`
	BytesPulled  int64 `json:"bytes_pulled"`
	FilesPushed  int   `json:"files_pushed"`
	BytesPushed  int64 `json:"bytes_pushed"`
	FilesDeleted int   `json:"files_deleted"`
	// Changes names the changed paths in order, at most MaxChanges of them.
	Changes []Change `json:"changes,omitempty"`
	// ChangesElided is how many more there were.
	ChangesElided int `json:"changes_elided,omitempty"`
	// Skipped names entries that were not saved as they are, with the reason: files that changed while they were read, files that
	// can't be read, sockets, devices and the like. At most MaxChanges of them.
	Skipped []string `json:"skipped,omitempty"`
	// SkippedElided is how many more there were.
	SkippedElided int `json:"skipped_elided,omitempty"`
}

// MaxChanges bounds the lists of paths in a WorkspaceResult.
const MaxChanges = 200

// Change is one path that a push changed in the store.
type Change struct {
	Path string `json:"path"`
	// Kind is added, modified or deleted.
	Kind string `json:"kind"`
}
