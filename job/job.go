package job

import "time"

// Version is the version of the job format that this package reads and writes.
const Version = "1"

// Caps of a job. They are checked before anything is asked of an engine.
const (
	MaxSpecBytes    = 1 << 20        // one encoded job
	MaxSteps        = 200            // steps of one job
	MaxInputs       = 1000           // input files of one job
	MaxEnvVars      = 100            // variables of one env map
	MaxEnvValue     = 32 << 10       // bytes of one value
	MaxEnvBytes     = 256 << 10      // bytes of all names and values of one env map
	MaxCommandBytes = 64 << 10       // bytes of one command; larger scripts go to stdin or an input file
	MaxLabels       = 64             // labels of one job
	MaxLabelBytes   = 256            // bytes of one label's value
	MaxNesting      = 32             // levels of nesting in an encoded job
	MinTimeout      = time.Second    // of a job or a step
	MaxTimeout      = 24 * time.Hour // of a job or a step
	MaxAttempts     = 20             // of a job or a step
)

// Defaults that apply where a job says nothing.
const (
	DefaultQueue   = "default"
	DefaultWorkdir = "/workspace"
	DefaultTimeout = time.Hour
	DefaultGrace   = 5 * time.Second
	DefaultBackoff = 5 * time.Second
)

// Job is the specification of one task. It is written by the producer and never
// changed afterwards. Decode reads one and refuses what is unknown or out of
// bounds; a Job built in code is checked by Validate.
type Job struct {
	// Version is the format's version. Empty means Version.
	Version string `json:"version,omitempty"`
	// ID is a ULID; the client makes one when it is empty.
	ID ID `json:"id,omitempty"`
	// Name is for people. At most 128 bytes, no control characters.
	Name string `json:"name,omitempty"`
	// Queue names the queue, [a-z0-9][a-z0-9-]{0,31}. Empty means DefaultQueue.
	Queue string `json:"queue,omitempty"`
	// Priority picks the class of the queue. Empty means normal.
	Priority Priority `json:"priority,omitempty"`
	// Labels are free for the producer; they come back in the result.
	Labels map[string]string `json:"labels,omitempty"`

	// Image is the container image. Required.
	Image string `json:"image"`
	// Platform is os/arch[/variant]. Empty means that of the engine.
	Platform string `json:"platform,omitempty"`
	// Pull says when the image is pulled. Empty means missing.
	Pull PullPolicy `json:"pull,omitempty"`
	// User runs the steps, "uid" or "uid:gid". Empty means 1000:1000. Uid 0 needs the worker's leave.
	User string `json:"user,omitempty"`
	// Workdir is where the workspace lies in the box. Empty means DefaultWorkdir.
	Workdir string `json:"workdir,omitempty"`
	// Env is set for every step. Never put a secret here: a spec is readable by whoever reads the queue.
	Env map[string]string `json:"env,omitempty"`
	// Network is the box's network. Empty means none.
	Network Network `json:"network,omitempty"`
	// Resources limits the box. Zero fields take the worker's defaults.
	Resources Resources `json:"resources,omitzero"`

	// Timeout bounds one attempt from the start of its first step to the end of its last. Zero means DefaultTimeout.
	Timeout Duration `json:"timeout,omitempty"`
	// NotBefore is the earliest start. Zero means at once.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Retry says how often the job's own failure is tried again.
	Retry Retry `json:"retry,omitzero"`
	// Workspace names the files that live longer than the job. Nil means an empty, throw-away workspace.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Inputs are put into the workspace after the pull and before the first step.
	Inputs []Input `json:"inputs,omitempty"`
	// Steps run in order. Required.
	Steps []Step `json:"steps"`
}

// Priority is the class of a queue that a job waits in. Higher classes are
// served first, lower ones are never starved.
type Priority string

// The priorities.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Priorities lists every Priority, the highest first.
func Priorities() []Priority { return []Priority{PriorityHigh, PriorityNormal, PriorityLow} }

// PullPolicy says when the engine fetches the image from its registry.
type PullPolicy string

// The pull policies.
const (
	PullAlways  PullPolicy = "always"
	PullMissing PullPolicy = "missing"
	PullNever   PullPolicy = "never"
)

// PullPolicies lists every PullPolicy.
func PullPolicies() []PullPolicy { return []PullPolicy{PullAlways, PullMissing, PullNever} }

// Network is what a box can reach.
type Network string

// The networks.
const (
	// NetworkNone: nothing but itself.
	NetworkNone Network = "none"
	// NetworkOpen: whatever the engine's default network reaches. Needs the worker's leave.
	NetworkOpen Network = "open"
)

// Networks lists every Network.
func Networks() []Network { return []Network{NetworkNone, NetworkOpen} }

// Resources limits a box. A zero field takes the worker's default.
type Resources struct {
	// CPUs is the share of processors, in cores. At least 0.01.
	CPUs float64 `json:"cpus,omitempty"`
	// Memory bounds the processes' memory and everything they put into tmp. There is no swap.
	Memory Bytes `json:"memory,omitempty"`
	// Pids bounds processes and threads.
	Pids int64 `json:"pids,omitempty"`
	// Disk makes the workspace a memory-backed file system of this size. Its content counts beside Memory.
	// Zero means a workspace on the engine's disk, without a limit of its own.
	Disk Bytes `json:"disk,omitempty"`
	// Tmp is the size of /tmp, which lives in memory and counts towards Memory.
	Tmp Bytes `json:"tmp,omitempty"`
	// Shm is the size of /dev/shm, which lives in memory and counts towards Memory.
	Shm Bytes `json:"shm,omitempty"`
}

// Retry says how often something is tried.
type Retry struct {
	// Attempts is the number of tries in all. Zero means 1.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the delay before the second try; it doubles from try to try, up to 5 min. Zero means DefaultBackoff.
	Backoff Duration `json:"backoff,omitempty"`
}

// Workspace names files in the store.
type Workspace struct {
	// Prefix is the workspace's name in the store: one to four parts of [a-z0-9][a-z0-9._-]{0,63}, joined by '/'. Required.
	Prefix string `json:"prefix"`
	// Pull says whether the files are restored before the first step. Empty means always.
	Pull PullWorkspace `json:"pull,omitempty"`
	// Push says when the changes are saved. Empty means on_success.
	Push PushWorkspace `json:"push,omitempty"`
}

// PullWorkspace says whether a workspace is restored.
type PullWorkspace string

// The values of PullWorkspace.
const (
	WorkspacePullAlways PullWorkspace = "always"
	WorkspacePullNever  PullWorkspace = "never"
)

// WorkspacePulls lists every PullWorkspace.
func WorkspacePulls() []PullWorkspace {
	return []PullWorkspace{WorkspacePullAlways, WorkspacePullNever}
}

// PushWorkspace says when a workspace is saved.
type PushWorkspace string

// The values of PushWorkspace.
const (
	// WorkspacePushAlways: after every attempt whose steps ran, also after a failure, a timeout or a first cancel.
	WorkspacePushAlways PushWorkspace = "always"
	// WorkspacePushOnSuccess: only if the steps succeeded.
	WorkspacePushOnSuccess PushWorkspace = "on_success"
	// WorkspacePushNever: the changes are thrown away.
	WorkspacePushNever PushWorkspace = "never"
)

// WorkspacePushes lists every PushWorkspace.
func WorkspacePushes() []PushWorkspace {
	return []PushWorkspace{WorkspacePushAlways, WorkspacePushOnSuccess, WorkspacePushNever}
}

// Input is one file that the producer gives to the job. Exactly one of Content,
// ContentBase64 and Key is set.
type Input struct {
	// Path is relative to the workspace.
	Path string `json:"path"`
	// Content is the file's text.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes, in standard base64.
	ContentBase64 []byte `json:"content_base64,omitempty" spec:"filled"`
	// Key names an object below the worker's input prefix in the store.
	Key string `json:"key,omitempty" spec:"filled"`
	// SHA256 is the lower-case hex digest of the object at Key. Required with Key.
	SHA256 string `json:"sha256,omitempty"`
	// Mode is the file's permission in octal, such as "0755". Empty means 0644.
	Mode Mode `json:"mode,omitempty"`
}

// Step is one action. Exactly one of Run, Command, Write, Read, Delete and List
// is set.
type Step struct {
	// Name is for people and for log keys. Empty means the position, counted from 1.
	Name string `json:"name,omitempty"`

	// Run is a script, handed to Shell.
	Run string `json:"run,omitempty" spec:"filled"`
	// Command is a program and its arguments. It needs no shell in the image.
	Command []string `json:"command,omitempty" spec:"filled"`
	// Write puts a file into the workspace.
	Write *WriteFile `json:"write,omitempty"`
	// Read prints a file of the workspace as the step's output.
	Read string `json:"read,omitempty" spec:"filled"`
	// Delete removes a file or a folder with all it holds. What is not there counts as removed.
	Delete string `json:"delete,omitempty" spec:"filled"`
	// List prints the entries of a folder of the workspace, one a line.
	List string `json:"list,omitempty" spec:"filled"`

	// Shell is the program and its arguments before the script. Empty means ["/bin/sh", "-e", "-c"]. Only with Run.
	Shell []string `json:"shell,omitempty" spec:"filled"`
	// Dir is the working directory, relative to the workspace or absolute. Empty means the workspace. Only with Run and Command.
	Dir string `json:"dir,omitempty"`
	// Env is added to the job's. Only with Run and Command.
	Env map[string]string `json:"env,omitempty"`
	// User overrides the job's. Only with Run and Command.
	User string `json:"user,omitempty"`
	// Stdin is given to the command. Nil means none. Only with Run and Command.
	Stdin *string `json:"stdin,omitempty"`
	// Timeout bounds the step. Zero means the rest of the job's.
	Timeout Duration `json:"timeout,omitempty"`
	// Grace is the time between TERM and KILL. Nil means DefaultGrace; 0s kills at once. At most MaxGrace. Only with Run and Command.
	Grace *Duration `json:"grace,omitempty"`
	// If says when the step runs. Empty means success.
	If Condition `json:"if,omitempty"`
	// ContinueOnError keeps the job's outcome untouched when the step fails.
	ContinueOnError bool `json:"continue_on_error,omitempty"`
	// Retry says how often the step is tried.
	Retry Retry `json:"retry,omitzero"`
}

// WriteFile is the argument of a write step. Exactly one of Content and
// ContentBase64 is set.
type WriteFile struct {
	// Path is relative to the workspace. Missing folders are made.
	Path string `json:"path"`
	// Content is the file's text.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes, in standard base64.
	ContentBase64 []byte `json:"content_base64,omitempty" spec:"filled"`
	// Mode is the file's permission in octal. Empty means 0644.
	Mode Mode `json:"mode,omitempty"`
}

// Condition says when a step runs.
type Condition string

// The conditions.
const (
	// IfSuccess: as long as no step before it failed.
	IfSuccess Condition = "success"
	// IfFailure: only after a step failed or timed out.
	IfFailure Condition = "failure"
	// IfAlways: also after a failure, a timeout or a first cancel. An abort ends these as well.
	IfAlways Condition = "always"
)

// Conditions lists every Condition.
func Conditions() []Condition { return []Condition{IfSuccess, IfFailure, IfAlways} }
