package container

import (
	"cmp"
	"time"
)

// Spec is what a box shall be. The zero value of a field is its closed default.
type Spec struct {
	// Name is the box's name on the engine, [a-z0-9][a-z0-9-]{0,62}. Required.
	Name string
	// Image is what to make the box of: Image.ID from Prepare. Required by docker; local ignores it.
	Image string
	// Platform is os/arch[/variant]. Empty means the engine's.
	Platform string
	// User runs the commands. The zero value means DefaultUser, or root if Relaxed holds
	// RelaxRootSteps. Uid 0 needs RelaxRootSteps.
	User User
	// Workdir is the absolute path of the workspace. Empty means DefaultWorkdir.
	// local chooses its own and reports it in Info.
	Workdir string
	// FromImage makes the workspace begin with what the image has at Workdir; the files become User's. Without it the workspace
	// begins empty. Not with Resources.Disk. local, which has no image, returns ErrUnsupported.
	FromImage bool
	// Env is set for every command, over PATH, HOME, LANG and CI.
	Env map[string]string
	// Network is what the box can reach. Empty means NetworkNone.
	Network Network
	// Resources limits the box. Zero fields take DefaultResources.
	Resources Resources
	// Labels are put on everything that is made for the box.
	Labels map[string]string
	// DeadMan is how long the box lives without a sign of its worker. Zero means 20 s.
	DeadMan time.Duration
	// Lifetime is how long the box lives at all. Zero means 25 h.
	Lifetime time.Duration
	// Relaxed lists what the box has beyond the closed defaults. Before Policy.Apply it is
	// what is asked for, afterwards what was granted.
	Relaxed []Relaxation
}

// Defaults of a Spec.
const (
	DefaultWorkdir  = "/workspace"
	DefaultDeadMan  = 20 * time.Second
	DefaultLifetime = 25 * time.Hour
)

// User is a numeric user and group. Names are not accepted: they would be looked
// up in files of the image.
type User struct{ UID, GID int }

// DefaultUser runs the commands of a box whose Spec names no user.
var DefaultUser = User{UID: 1000, GID: 1000}

// Network is what a box can reach.
type Network string

// The networks.
const (
	// NetworkNone: only the loopback interface.
	NetworkNone Network = "none"
	// NetworkOpen: the engine's default network. Needs RelaxNetworkOpen.
	NetworkOpen Network = "open"
)

// Resources limits a box. A zero field takes the default of DefaultResources. The tags are read by package policyfile.
//
// job.Resources is another type on purpose: it is part of a job's format, and what a job asks for, which a worker may cut or refuse. A field here
// that a job can't ask for, such as Files, is the worker's alone.
type Resources struct {
	CPUs   float64 `json:"cpus"`               // cores
	Memory int64   `json:"memory" spec:"size"` // bytes, without swap; /tmp, /dev/shm and /run count towards it
	Pids   int64   `json:"pids"`               // processes and threads
	Disk   int64   `json:"disk" spec:"size"`   // bytes of a memory-backed workspace, on top of Memory; 0: on the engine's disk, unlimited
	Tmp    int64   `json:"tmp" spec:"size"`    // bytes of /tmp
	Shm    int64   `json:"shm" spec:"size"`    // bytes of /dev/shm
	Files  int64   `json:"files"`              // open files of one process
}

// DefaultResources returns the limits of a box that asks for nothing.
func DefaultResources() Resources {
	return Resources{CPUs: 2, Memory: 2 << 30, Pids: 512, Tmp: 256 << 20, Shm: 64 << 20, Files: 8192}
}

// Or returns r with its zero fields taken from def. A Tmp and a Shm of def are cut to r's Memory, which they count
// towards: a job that asks for little memory does not get more of it as Tmp or Shm.
func (r Resources) Or(def Resources) Resources {
	asked := r
	r.CPUs = cmp.Or(r.CPUs, def.CPUs)
	defaults := def.fields()
	for i, f := range r.fields() {
		*f.value = cmp.Or(*f.value, *defaults[i].value)
	}
	return r.cut(asked)
}

// cut bounds Tmp and Shm by Memory where asked leaves them out.
func (r Resources) cut(asked Resources) Resources {
	if r.Memory == 0 {
		return r
	}
	if asked.Tmp == 0 {
		r.Tmp = min(r.Tmp, r.Memory)
	}
	if asked.Shm == 0 {
		r.Shm = min(r.Shm, r.Memory)
	}
	return r
}

// Label keys that slipway puts on everything it makes. A reaper and a person
// find by them what belongs to whom.
const (
	LabelProduct = "io.slipway.product" // always Product
	LabelBox     = "io.slipway.box"     // Spec.Name; every provider puts it on all that it makes for the box
	LabelWorker  = "io.slipway.worker"  // for people: two workers may have one name
	LabelJob     = "io.slipway.job"
	LabelAttempt = "io.slipway.attempt"
	LabelFence   = "io.slipway.fence"
	LabelExpires = "io.slipway.expires" // Unix seconds
	// These four say whose a box is: a random id of the worker, and where to look whether it still lives.
	LabelInstance = "io.slipway.instance"
	LabelHost     = "io.slipway.host"    // the host's name
	LabelBoot     = "io.slipway.boot"    // of the host's kernel
	LabelProcess  = "io.slipway.process" // namespace, number and start of the process
)

// Product is the value of LabelProduct and the first part of every box's name.
const Product = "slipway"
