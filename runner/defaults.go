package runner

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
)

// Defaults of a Config.
const (
	DefaultSoftStop       = 2 * time.Minute
	DefaultCleanupTimeout = time.Minute
	DefaultPullTimeout    = 10 * time.Minute
	DefaultSyncTimeout    = 15 * time.Minute
	DefaultInfraBudget    = 10
	DefaultInfraBackoff   = 5 * time.Second
	DefaultStepLogLimit   = 16 << 20
	DefaultJobLogLimit    = 256 << 20
	DefaultLiveLimit      = 4 << 20
	DefaultExcerpt        = 4 << 10
	DefaultObservation    = 16 << 10
)

// MaxExcerpt bounds Config.Excerpt: a result must fit into one message of the queue.
const MaxExcerpt = 64 << 10

// MaxObservation bounds Config.Observation: a loop.Turn holds a head and a tail for up to job.MaxSteps results.
const MaxObservation = 1 << 20

var prefixRE = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*/)*$`)

// withDefaults returns a copy of c in which every field that has a default is set.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, DefaultName())
	c.Slots = cmp.Or(c.Slots, runtime.GOMAXPROCS(0))
	c.Timing = cmp.Or(c.Timing, job.DefaultTiming())
	c.SoftStop = cmp.Or(c.SoftStop, DefaultSoftStop)
	c.CleanupTimeout = cmp.Or(c.CleanupTimeout, DefaultCleanupTimeout)
	c.PullTimeout = cmp.Or(c.PullTimeout, DefaultPullTimeout)
	c.SyncTimeout = cmp.Or(c.SyncTimeout, DefaultSyncTimeout)
	c.InfraBudget = cmp.Or(c.InfraBudget, DefaultInfraBudget)
	c.InfraBackoff = cmp.Or(c.InfraBackoff, DefaultInfraBackoff)
	c.StepLogLimit = cmp.Or(c.StepLogLimit, DefaultStepLogLimit)
	c.JobLogLimit = cmp.Or(c.JobLogLimit, max(DefaultJobLogLimit, c.StepLogLimit))
	c.LiveLimit = cmp.Or(c.LiveLimit, DefaultLiveLimit)
	c.Excerpt = cmp.Or(c.Excerpt, DefaultExcerpt)
	c.Observation = cmp.Or(c.Observation, DefaultObservation)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Observer == nil {
		c.Observer = NopObserver{}
	}
	return c
}

// DefaultName makes up a worker's name: the host's, cut to what a name may hold, and a random part that tells the workers
// of one host apart. Call it if the queue needs the worker's name before New is called, and set Config.Name to the same value.
func DefaultName() string {
	host, _ := os.Hostname() // without one the random part has to do
	return nameOn(host) + "-" + strings.ToLower(rand.Text()[:8])
}

// nameOn turns a host's name into the first part of a worker's name.
func nameOn(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, host)
	clean = strings.TrimLeft(clean, "-")
	if clean == "" {
		clean = "worker"
	}
	return clean[:min(len(clean), 48)]
}

// validate reports the first rule that c breaks. The defaults are filled in.
func (c Config) validate() error {
	switch {
	case c.Queue == nil:
		return errors.New("config: Queue is required: without it there are no jobs")
	case c.Provider == nil:
		return errors.New("config: Provider is required: without it there are no boxes")
	case c.Slots < 0:
		return fmt.Errorf("config: Slots is %d, must not be negative", c.Slots)
	case c.Excerpt < 0 || c.Excerpt > MaxExcerpt:
		return fmt.Errorf("config: Excerpt is %d, must be from 1 to %d", c.Excerpt, MaxExcerpt)
	case c.Observation < 0 || c.Observation > MaxObservation:
		return fmt.Errorf("config: Observation is %d, must be from 1 to %d", c.Observation, MaxObservation)
	case c.StepLogLimit < 0:
		return fmt.Errorf("config: StepLogLimit is %d, must not be negative", c.StepLogLimit)
	case c.JobLogLimit < c.StepLogLimit:
		return fmt.Errorf("config: JobLogLimit is %d, less than the %d of StepLogLimit", c.JobLogLimit, c.StepLogLimit)
	}
	if err := job.CheckWorker(c.Name); err != nil {
		return fmt.Errorf("config: Name: %w", err)
	}
	if err := CheckPrefix(c.Prefix); err != nil {
		return fmt.Errorf("config: Prefix: %w", err)
	}
	if err := c.validateClocks(); err != nil {
		return err
	}
	if err := c.Policy.Validate(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	// A default that the worker's own policy refuses would refuse every job, one by one. What
	// Resources leaves out is the policy's to fill: it cuts its own defaults to its bounds.
	probe := container.Spec{Name: container.Product, Resources: c.Resources}
	if _, err := c.Policy.Apply(probe); err != nil {
		return fmt.Errorf("config: Resources go beyond Policy: %w", err)
	}
	return nil
}

// CheckPrefix tells whether the keys of a store can begin with prefix. Its error says what is wanted.
func CheckPrefix(prefix string) error {
	if !prefixRE.MatchString(prefix) {
		return fmt.Errorf("want nothing, or folders such as \"team/\" that end with a slash and begin without one, not %.100q", prefix)
	}
	return nil
}

// minLive is what the events of every attempt may take: enough for its steps and the end of what they print.
const minLive = 64 << 10

// liveLimit is what the events of an attempt may take. The attempts of a job together take no more than twice LiveLimit
// and minLive each.
func (c Config) liveLimit(attempt int) int64 {
	if c.LiveLimit < 0 {
		return 0
	}
	return max(c.LiveLimit>>max(attempt-1, 0), minLive)
}

func (c Config) validateClocks() error {
	if err := c.Timing.Validate(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	switch {
	case c.CleanupTimeout < 0:
		return fmt.Errorf("config: CleanupTimeout is %s, must be positive: a box that nobody removes stays", c.CleanupTimeout)
	case c.PullTimeout < 0:
		return fmt.Errorf("config: PullTimeout is %s, must be positive", c.PullTimeout)
	case c.SyncTimeout < 0:
		return fmt.Errorf("config: SyncTimeout is %s, must be positive", c.SyncTimeout)
	case c.InfraBackoff < 0:
		return fmt.Errorf("config: InfraBackoff is %s, must be positive: without a delay a dead engine is asked in a tight loop", c.InfraBackoff)
	}
	return nil
}
