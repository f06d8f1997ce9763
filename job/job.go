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
	maxNesting      = 32             // levels of nesting in an encoded job
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
// changed afterwards.
//
// Decode reads a job, and refuses unknown fields and values out of bounds. Validate checks a Job that was built in
// code. The JSON Schema and docs/job.md are generated from the first paragraph of a type's comment and from the
// comments of its fields.
type Job struct {
	// Version is the format's version. Empty means the present one. Limits: only "1".
	Version string `json:"version,omitempty"`
	// ID is the job's identity. Submitting the same one again does no harm. Empty means one that `submit` makes. Limits: a ULID.
	ID ID `json:"id,omitempty"`
	// Name is for people. Empty means none. Limits: 128 bytes, no control characters.
	Name string `json:"name,omitempty"`
	// Queue is the name of the queue. Empty means DefaultQueue. Limits: 32 of a-z, 0-9 and '-', not starting with '-'.
	Queue string `json:"queue,omitempty"`
	// Priority says how often the job gets its turn while others wait, too. Empty means normal.
	Priority Priority `json:"priority,omitempty"`
	// Labels are free for the producer; they come back in the result. Empty means none.
	// Limits: MaxLabels; a name has 63 of letters, digits, '.', '_', '-' and '/', a value MaxLabelBytes bytes.
	Labels map[string]string `json:"labels,omitempty"`

	// Image is the container image. Required. Limits: 512 bytes, written as `docker pull` takes it.
	Image string `json:"image"`
	// Platform picks one of the image's platforms, os/arch[/variant]. Empty means that of the engine. Limits: Linux only.
	Platform string `json:"platform,omitempty"`
	// Pull says when the image is pulled. Empty means missing.
	Pull PullPolicy `json:"pull,omitempty"`
	// User is who runs the steps, "uid" or "uid:gid". Empty means 1000:1000. Uid or gid 0 needs `root_steps` in the worker's policy.
	// Limits: numbers, for names would be looked up in files of the image.
	User string `json:"user,omitempty"`
	// Workdir is where the workspace lies in the box. The folder belongs to User. Empty means DefaultWorkdir.
	// Limits: absolute, without ':' and ',', not a folder of the system.
	Workdir string `json:"workdir,omitempty"`
	// Env is set for every step. Never put a secret here: everybody who can read the queue can read a spec. Empty means none.
	// Limits: MaxEnvVars; MaxEnvValue a value, MaxEnvBytes in all; a name has 128 of letters, digits and '_'.
	Env map[string]string `json:"env,omitempty"`
	// Network is what the box can reach. Empty means none.
	Network Network `json:"network,omitempty"`
	// Relax lists the closed defaults of a box that this one does without. Each needs its key in the worker's policy. Empty means none.
	Relax []Relaxation `json:"relax,omitempty"`
	// Resources limits the box. Zero means the worker's defaults.
	Resources Resources `json:"resources,omitzero"`

	// Timeout bounds one attempt from the start of its first step. Then the running step is ended, and only steps with `if: always` still
	// run, for 5m in all. Zero means DefaultTimeout.
	// Limits: MinTimeout to MaxTimeout.
	Timeout Duration `json:"timeout,omitempty"`
	// NotBefore is the earliest start. Zero means at once. Limits: at most a year away.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Retry says how often the job is run if it fails or times out, each time in a new box. Zero means once.
	Retry Retry `json:"retry,omitzero"`
	// Workspace says what the box's workspace begins with, and where it is kept. Nil means an empty, throw-away workspace.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Inputs are put into the workspace after the pull and before the first step, and saved with it like other files. Empty means none. Limits: MaxInputs.
	Inputs []Input `json:"inputs,omitempty"`
	// Steps run in order. Required. Limits: 1 to MaxSteps.
	Steps []Step `json:"steps"`
}

// Priority says how often a waiting job gets its turn. Jobs of a higher priority get
// more turns, and those of a lower one always get some.
type Priority string

// The priorities.
const (
	PriorityHigh   Priority = "high"   // PriorityHigh: served most often.
	PriorityNormal Priority = "normal" // PriorityNormal: served less often.
	PriorityLow    Priority = "low"    // PriorityLow: served least, but never starved.
)

// Priorities lists every Priority, the highest first.
func Priorities() []Priority { return []Priority{PriorityHigh, PriorityNormal, PriorityLow} }

// PullPolicy says when the engine fetches the image from its registry.
type PullPolicy string

// The pull policies.
const (
	PullAlways  PullPolicy = "always"  // PullAlways: for each attempt.
	PullMissing PullPolicy = "missing" // PullMissing: if the engine does not have it.
	PullNever   PullPolicy = "never"   // PullNever: the engine has it, or the job can't run.
)

// pullPolicies lists every PullPolicy.
func pullPolicies() []PullPolicy { return []PullPolicy{PullAlways, PullMissing, PullNever} }

// Network is what a box can reach.
type Network string

// The networks.
const (
	// NetworkNone: nothing but itself.
	NetworkNone Network = "none"
	// NetworkOpen: whatever the engine's default network reaches. Needs `network_open` in the worker's policy.
	NetworkOpen Network = "open"
)

// networks lists every Network.
func networks() []Network { return []Network{NetworkNone, NetworkOpen} }

// Relaxation is a closed default that a box can do without. The network and root have fields of their own.
type Relaxation string

// The relaxations that a job asks for by name.
const (
	// RelaxRootfsWritable: the image's own files can be changed in the box. Needs `rootfs_writable` in the worker's policy.
	RelaxRootfsWritable Relaxation = "rootfs_writable"
	// RelaxSeccompDefault: the engine's own filter of system calls, which is wider. Needs `seccomp_default` in the worker's policy.
	RelaxSeccompDefault Relaxation = "seccomp_default"
)

// relaxations lists every Relaxation.
func relaxations() []Relaxation { return []Relaxation{RelaxRootfsWritable, RelaxSeccompDefault} }

// Resources limits a box. A field that is left out takes the worker's default.
type Resources struct {
	// CPUs is the share of processors, in cores. Zero means the worker's default. Limits: MinCPUs to MaxCPUs.
	CPUs float64 `json:"cpus,omitempty"`
	// Memory bounds the processes' memory and everything they put into /tmp and /dev/shm. There is no swap.
	// Zero means the worker's default. Limits: MinMemory to MaxSize.
	Memory Bytes `json:"memory,omitempty"`
	// Pids bounds processes and threads. Zero means the worker's default. Limits: MinPids to MaxPids.
	Pids int64 `json:"pids,omitempty"`
	// Disk makes the workspace a memory-backed file system of this size. Its content counts beside Memory. Then no file of
	// the box, holes included, can be more than 1MiB larger than the largest of Disk, Tmp and Shm.
	// Zero means the worker's default, mostly a workspace on the engine's disk, without a limit of its own. Limits: MinDisk to MaxSize.
	Disk Bytes `json:"disk,omitempty"`
	// Tmp is the size of /tmp, which lives in memory and counts towards Memory. Zero means the worker's default, cut to Memory.
	// Limits: MinTmp to Memory.
	Tmp Bytes `json:"tmp,omitempty"`
	// Shm is the size of /dev/shm, which lives in memory and counts towards Memory. Zero means the worker's default, cut to Memory.
	// Limits: MinShm to Memory.
	Shm Bytes `json:"shm,omitempty"`
}

// Retry says how often something is tried.
type Retry struct {
	// Attempts is the number of tries in all. Zero means 1. Limits: 1 to MaxAttempts.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the delay before the second try; it doubles from try to try, up to MaxBackoff. Zero means DefaultBackoff.
	// Limits: 1ms to MaxBackoff.
	Backoff Duration `json:"backoff,omitempty"`
}

// Workspace says what a workspace begins with, and where its files live longer than the job.
type Workspace struct {
	// Prefix is the workspace's name in the store. Needed unless FromImage is true; without it nothing is restored or saved.
	// Limits: one to four parts joined by '/', each up to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit.
	Prefix string `json:"prefix,omitempty"`
	// FromImage makes the workspace begin with what the image has at the job's workdir, such as /testbed, unless something is
	// stored that is restored instead. The files become those of the job's user. Not with resources.disk. Empty means false.
	FromImage bool `json:"from_image,omitempty"`
	// Pull says whether the files are restored before the first step. Empty means always.
	Pull PullWorkspace `json:"pull,omitempty"`
	// Push says when the changes are saved. Empty means on_success.
	Push PushWorkspace `json:"push,omitempty"`
}

// PullWorkspace says whether a workspace is restored.
type PullWorkspace string

// The values of PullWorkspace.
const (
	// WorkspacePullAlways: the files are restored.
	WorkspacePullAlways PullWorkspace = "always"
	// WorkspacePullNever: the job begins with an empty folder, or the image's, and its files replace the workspace when they are saved.
	WorkspacePullNever PullWorkspace = "never"
)

// workspacePulls lists every PullWorkspace.
func workspacePulls() []PullWorkspace {
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

// workspacePushes lists every PushWorkspace.
func workspacePushes() []PushWorkspace {
	return []PushWorkspace{WorkspacePushAlways, WorkspacePushOnSuccess, WorkspacePushNever}
}

// Input is one file that the producer gives to the job. Exactly one of Content,
// ContentBase64 and Key is given.
type Input struct {
	// Path is where the file shall be. Required.
	// Limits: relative to the workspace, clean, 4096 bytes, not starting with .sandbox-state.
	Path string `json:"path"`
	// Content is the file's text. Limits: a job has MaxSpecBytes in all.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes, in standard base64. Limits: as Content.
	ContentBase64 []byte `json:"content_base64,omitempty" spec:"filled"`
	// Key names an object in the worker's store, below the folder inputs/. Limits: as Path, 4096 bytes.
	Key string `json:"key,omitempty" spec:"filled"`
	// SHA256 is the digest of the object at Key, as sha256sum prints it. Needed with Key, and only there.
	// Limits: 64 of 0-9 and a-f.
	SHA256 string `json:"sha256,omitempty"`
	// Mode is the file's permission in octal, such as "0755". Empty means 0644. Limits: at most 0777.
	Mode Mode `json:"mode,omitempty"`
}

// Step is one action. Exactly one of Run, Command, Write, Read, Delete and List
// is given.
type Step struct {
	// Name is for people and for log keys. Empty means the position, counted from 1. Limits: 128 bytes, no control characters.
	Name string `json:"name,omitempty"`

	// Run is a script, handed to Shell. Limits: MaxCommandBytes, not blank.
	Run string `json:"run,omitempty" spec:"filled"`
	// Command is a program and its arguments. It needs no shell in the image. Limits: MaxCommandBytes in all.
	Command []string `json:"command,omitempty" spec:"filled"`
	// Write puts a file into the workspace.
	Write *WriteFile `json:"write,omitempty"`
	// Read prints a file of the workspace as the step's output. Limits: a path like Input's, 4096 bytes.
	Read string `json:"read,omitempty" spec:"filled"`
	// Delete removes a file, or a folder with its content. A path that does not exist counts as removed.
	// Limits: a path like Input's, 4096 bytes.
	Delete string `json:"delete,omitempty" spec:"filled"`
	// List prints the entries of a folder of the workspace, one a line; "." is the workspace.
	// Limits: relative to the workspace, clean.
	List string `json:"list,omitempty" spec:"filled"`

	// Shell is the program and its arguments before the script. Empty means ["/bin/sh", "-e", "-c"]. Only with Run. Limits: MaxCommandBytes in all.
	Shell []string `json:"shell,omitempty" spec:"filled"`
	// Dir is the working directory, relative to the workspace or absolute. Empty means the workspace. Only with Run and Command.
	// Limits: clean, not in /proc, /sys and /dev.
	Dir string `json:"dir,omitempty"`
	// Env is added to the job's, and wins. Empty means none. Only with Run and Command. Limits: as the job's, MaxEnvVars of its own.
	Env map[string]string `json:"env,omitempty"`
	// User runs this step instead of the job's. Empty means the job's. Only with Run and Command. Limits: as the job's.
	User string `json:"user,omitempty"`
	// Stdin is what the command reads. Nil means nothing. Only with Run and Command.
	Stdin *string `json:"stdin,omitempty"`
	// Timeout bounds one try of the step. Zero means the rest of the job's. Limits: MinTimeout to MaxTimeout.
	Timeout Duration `json:"timeout,omitempty"`
	// Grace is the time between TERM and KILL at a timeout or a cancel. Nil means DefaultGrace. 0s kills at once. Only with Run and Command.
	// Limits: 0s to MaxGrace.
	Grace *Duration `json:"grace,omitempty"`
	// If says when the step runs. Empty means success.
	If Condition `json:"if,omitempty"`
	// ContinueOnError keeps the job's outcome untouched when the step fails. The next steps run as after a success.
	ContinueOnError bool `json:"continue_on_error,omitempty"`
	// Retry says how often the step is run if it fails or times out, in the same box. Zero means once.
	Retry Retry `json:"retry,omitzero"`
}
