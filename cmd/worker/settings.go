package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/settings"
	"slipway/internal/suggest"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/metrics"
	"slipway/runner"
)

// config is everything that serve can be told.
type config struct {
	file string
	set  *settings.Set

	name    string
	slots   int
	queues  []string
	shares  []string
	weights map[string]int // the shares, read
	policy  policyConfig
	nats    cli.NATS
	s3      s3Config
	jobLogs jobLogs
	limits  limits
	docker  dockerConfig

	metricsAddr string
	stateDir    string
	softStop    time.Duration
	log         logConfig
}

type s3Config struct {
	cli.S3
	prefix       string
	createBucket bool
}

type logConfig struct{ level, format string }

// addConfig adds the settings of a worker to flags.
func addConfig(flags *pflag.FlagSet) *config {
	c := &config{}
	flags.StringVar(&c.file, "config", "", "YAML `file` with settings (SLIPWAY_CONFIG)")
	set := settings.New(flags)
	c.set = set
	set.String(&c.name, "name", "", "tells this worker from all others; default: the host's name and a random part").
		Check(cli.UnlessEmpty(&c.name, job.CheckWorker))
	addSlots(set, &c.slots)
	set.Strings(&c.queues, "queues", []string{job.DefaultQueue}, "the queues to serve").
		Check(func() error { return natsqueue.CheckQueues(c.queues) })
	set.Strings(&c.shares, "queue_weights", nil, "shares of the turns while several queues have jobs, QUEUE=N each, 1 to 100; default: 1 each").
		Check(func() (err error) { c.weights, err = parseShares(c.shares); return err })
	set.Together(func() error { return natsqueue.CheckWeights(c.queues, c.weights) }, "queues", "queue_weights")
	addPolicy(set, &c.policy, "everything is closed")
	c.nats.Register(set)
	addStreams(set, &c.nats.Worker)
	addS3(set, &c.s3)
	addJobLogs(set, &c.jobLogs, &c.nats.Worker.EventsBytes)
	addLimits(set, &c.limits)
	addDocker(set, &c.docker)
	set.String(&c.metricsAddr, "metrics.addr", metrics.DefaultAddr, "where /metrics, /livez and /readyz are served; off: nowhere").
		Check(func() error {
			if c.metricsAddr == metricsOff {
				return nil
			}
			return metrics.CheckAddr(c.metricsAddr)
		})
	set.String(&c.stateDir, "state_dir", "", "folder that outlives this program, for finished results that the queue did not take; empty: their jobs run again").AlsoEnv("STATE_DIRECTORY").
		Check(cli.UnlessEmpty(&c.stateDir, checkStateDir))
	addSoftStop(set, &c.softStop, runner.DefaultSoftStop, "SIGTERM")
	addTiming(set, &c.nats.Worker.Timing)
	addLog(set, &c.log, "json")
	return c
}

// checkStateDir wants a place that does not depend on where the worker is started.
func checkStateDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("want the absolute path of a folder, not %.100q", dir)
	}
	return nil
}

// parseShares reads QUEUE=N, once for each queue.
func parseShares(shares []string) (map[string]int, error) {
	weights := map[string]int{}
	for _, share := range shares {
		queue, number, ok := strings.Cut(share, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("want QUEUE=N, such as builds=3, not %.60q", share)
		}
		if weights[queue] != 0 {
			return nil, fmt.Errorf("%.40s is given twice", queue)
		}
		weights[queue] = n
	}
	return weights, nil
}

// addStreams adds what the queue's streams are made with. Those that exist keep their limits: worker doctor shows where they
// differ.
func addStreams(set *settings.Set, c *natsqueue.Config) {
	set.Int(&c.Replicas, "nats.replicas", 1, "copies of each stream, when this worker makes them: 1, 3 or 5").
		Check(func() error { return natsqueue.CheckReplicas(c.Replicas) })
	set.Int64(&c.MaxJobs, "nats.max_jobs", natsqueue.DefaultMaxJobs, "most jobs that wait or run; more are refused").
		Check(func() error { return atLeast(1, c.MaxJobs) })
	set.Size(&c.MaxJobBytes, "nats.max_job_bytes", natsqueue.DefaultMaxJobBytes, "most bytes of their specs").
		Check(func() error { return atLeast(job.MaxSpecBytes, c.MaxJobBytes) })
	size := func(field *int64, key string, def int64, usage string) {
		set.Size(field, key, def, usage).Check(func() error { return atLeast(job.MaxSpecBytes, *field) })
	}
	size(&c.MaxScheduledBytes, "nats.max_scheduled_bytes", natsqueue.DefaultMaxScheduledBytes, "most bytes of the specs of jobs whose time has not come")
	size(&c.ResultsBytes, "nats.results_bytes", natsqueue.DefaultResultsBytes, "most bytes of results; the oldest go first")
	size(&c.DeadBytes, "nats.dead_bytes", natsqueue.DefaultDeadBytes, "most bytes of dead letters; none is dropped")
	size(&c.RecordsBytes, "nats.records_bytes", natsqueue.DefaultRecordsBytes, "most bytes of the records of jobs; a quarter is kept for jobs that were accepted already")
	set.Duration(&c.EventsAge, "nats.events_age", natsqueue.DefaultEventsAge, "how long the events of jobs are kept").
		Check(func() error { return atLeast(time.Minute, c.EventsAge) })
	set.Size(&c.EventsBytes, "nats.events_bytes", natsqueue.DefaultEventsBytes, "most bytes of events; the oldest go first").
		Check(func() error { return atLeast(1<<20, c.EventsBytes) })
	set.Duration(&c.ResultsAge, "nats.results_age", natsqueue.DefaultResultsAge, "how long results are kept").
		Check(func() error { return atLeast(time.Minute, c.ResultsAge) })
	set.Int(&c.CrashBudget, "crash_budget", natsqueue.DefaultCrashBudget, "how many deaths of a worker a job survives").
		Check(func() error { return atLeast(0, c.CrashBudget) })
}

// atLeast is a rule for a number.
func atLeast[T int | int64 | time.Duration](least, v T) error {
	if v < least {
		return fmt.Errorf("want at least %v, not %v", least, v)
	}
	return nil
}

// metricsOff is the address that serves no metrics.
const metricsOff = "off"

func addSlots(set *settings.Set, slots *int) {
	const most = 4096 // far beyond any engine: a slip of the finger, which would fill the memory with idle slots
	set.Int(slots, "slots", 0, "how many jobs run at once; 0: one per processor").Check(func() error {
		if *slots < 0 || *slots > most {
			return fmt.Errorf("want 0 to %d, not %d", most, *slots)
		}
		return nil
	})
}

func addPolicy(set *settings.Set, c *policyConfig, without string) {
	set.String(&c.file, "policy", "", "YAML file that says what jobs may ask for; without one "+without).Check(c.load)
}

func addS3(set *settings.Set, c *s3Config) {
	c.Register(set, "no store, jobs that need one are refused")
	c.RegisterEncryption(set)
	set.String(&c.prefix, "s3.prefix", "", "put before every key in the bucket; ends with a slash").
		Check(func() error { return runner.CheckPrefix(c.prefix) })
	set.Bool(&c.createBucket, "s3.create_bucket", false, "make the bucket if it is missing")
}

func addSoftStop(set *settings.Set, d *time.Duration, def time.Duration, signal string) {
	set.Duration(d, "soft_stop", def, "how long running jobs may go on after a first "+signal).Check(func() error {
		if *d < 0 {
			return fmt.Errorf("want 0s or more, not %s", *d)
		}
		return nil
	})
}

func addLog(set *settings.Set, c *logConfig, format string) {
	set.String(&c.level, "log.level", "info", "debug, info, warn or error").
		Check(func() error { return oneOf(c.level, "debug", "info", "warn", "error") })
	set.String(&c.format, "log.format", format, "json or text").
		Check(func() error { return oneOf(c.format, "json", "text") })
}

func oneOf(word string, words ...string) error {
	if !slices.Contains(words, word) {
		return fmt.Errorf("want one of %s, not %.40q%s", strings.Join(words, ", "), word, suggest.DidYouMean(suggest.Nearest(word, words)))
	}
	return nil
}

func addTiming(set *settings.Set, t *job.Timing) {
	def := job.DefaultTiming()
	set.Duration(&t.DeadMan, "timing.dead_man", def.DeadMan, "a box ends by itself after this time without a sign of its worker; less than lease")
	set.Duration(&t.Lease, "timing.lease", def.Lease, "a worker gives a job up after this time without a confirmation; less than ack_wait")
	set.Duration(&t.AckWait, "timing.ack_wait", def.AckWait, "another worker gets the job after this time; the same for all workers of a queue")
	set.Duration(&t.Heartbeat, "timing.heartbeat", def.Heartbeat, "how often a worker confirms that it is there; at most half of lease")
	set.Together(func() error {
		err := t.Validate()
		if err == nil {
			return nil
		}
		return errors.New(strings.TrimPrefix(err.Error(), "timing: ")) // the setting's name says it
	}, "timing.dead_man", "timing.lease", "timing.ack_wait", "timing.heartbeat")
}
