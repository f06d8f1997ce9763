package runner

import (
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/loop"
	wsync "slipway/sync"
)

// Config is everything a Worker needs. New copies it, fills the defaults and
// validates it. Queue and Provider are required.
type Config struct {
	// Name tells this worker from every other one, [a-z0-9][a-z0-9-]{0,62}. Default: the host's name and a random part.
	Name string
	// Queue hands out the jobs.
	Queue job.Consumer
	// Provider makes the boxes. The Worker does not close it.
	Provider container.Provider
	// Store keeps workspaces, large inputs and logs. Nil: jobs that need one are refused
	// by policy, and logs beyond a result's head and tail are lost.
	Store wsync.Store
	// Prefix is put before every key in Store, "" or "something/". Below it lie workspaces/, inputs/ and logs/.
	Prefix string

	// Slots is how many jobs run at once. Default: the number of processors.
	Slots int
	// Policy is what jobs may ask for. The zero value is closed.
	Policy container.Policy
	// Decider returns the loop.Decider of one attempt. It gets a copy of the job with its defaults. If it returns an error,
	// the job ends as errored/spec_invalid before a box is made. A failure that may pass, such as a service that is away,
	// must come from loop.Decider.Next instead. Decider is called from many goroutines at once. Default: loop.Script of the
	// job's own steps.
	Decider func(*job.Job) (loop.Decider, error)
	// Resources fills what a job's resources leave out. Zero fields take container.DefaultResources, cut to Policy.
	Resources container.Resources
	// Timing holds the clocks of the lease. Default: job.DefaultTiming. It must be the queue's own.
	Timing job.Timing

	// SoftStop is how long running attempts may go on after Run's context ended. Then they
	// are canceled, and their jobs given back. Default 2 min; negative: not at all.
	SoftStop time.Duration
	// CleanupTimeout bounds the teardown of one attempt. Default 60 s.
	CleanupTimeout time.Duration
	// PullTimeout bounds the pull of an image. Default 10 min.
	PullTimeout time.Duration
	// SyncTimeout bounds one pull or push of a workspace. Default 15 min.
	SyncTimeout time.Duration
	// InfraBudget is how many infrastructure failures a job survives. Default 10; negative: none.
	InfraBudget int
	// InfraBackoff is the delay after the first infrastructure failure; it doubles up to 5 min. Default 5 s.
	InfraBackoff time.Duration
	// StoreName says where Store is, for the people who read a result: s3://bucket at an address. It must hold no secret.
	StoreName string
	// StepLogLimit bounds the stored log of one step, in bytes. Of a longer output the log has the first half of the limit
	// and the last, with a line between them that says what is left out. Default 16 MiB.
	StepLogLimit int64
	// JobLogLimit bounds the stored logs of all steps of one attempt, in bytes. Default 256 MiB, or StepLogLimit if that is more.
	JobLogLimit int64
	// LiveLimit bounds what the events of one attempt take in the queue, in bytes: the queue keeps the events of all jobs in
	// one place, where the oldest go first, and one job must not push out all others. Output beyond it is left out of the
	// events, but for the end of each step, and an event tells how much. A second attempt has half of it, a third a quarter,
	// down to 64 KiB. Default 4 MiB; negative: no limit.
	LiveLimit int64
	// Excerpt is the size of the head and of the tail of a step's output in the result, in bytes. Default 4 KiB,
	// at most MaxExcerpt. A job of many steps gets less for each, so that its result fits into one message.
	Excerpt int
	// Observation is the same for what a Decider is told of a step's output. It does not depend on the result, and is
	// kept for one turn only. Default 16 KiB, at most MaxObservation. It has no effect without a Decider.
	Observation int

	// Logger gets structured logs with the attempt's fields. Default: none.
	Logger *zap.Logger
	// Observer is told what happens. Default: nobody.
	Observer Observer
}
