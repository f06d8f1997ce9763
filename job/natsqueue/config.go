package natsqueue

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"slipway/job"
)

// Config says where the queue is and how it is laid out. Everybody who shares a
// queue uses the same Prefix and Timing.
type Config struct {
	// URL is the server's, such as nats://127.0.0.1:4222, or several separated by commas. Required without InProcess.
	URL string
	// CredsFile is a NATS credentials file: a JWT and a seed. Optional.
	CredsFile string
	// NkeyFile is a file with the seed of an NKey, for servers that list users by their public key. Optional; it excludes CredsFile.
	NkeyFile string
	// CAFile is a PEM file with the authorities that the server's certificate is checked against. Default: those of the system.
	CAFile string
	// CertFile and KeyFile are PEM files with the certificate and the key that this connection shows to a server that asks for
	// one. Optional; they go together. They and CAFile are read again at each reconnect, so that they can be renewed.
	CertFile, KeyFile string
	// TLSFirst begins with TLS, before the server has said anything. A server wants it that has handshake_first.
	TLSFirst bool
	// Name is what the server shows for this connection. Default: slipway.
	Name string
	// InboxPrefix is where replies go, for accounts that may subscribe to that subject alone. Default _INBOX.
	InboxPrefix string
	// InProcess connects to an embedded server without a port, in place of URL.
	InProcess interface{ InProcessConn() (net.Conn, error) }

	// Prefix is put before all subjects, streams and buckets, [a-z0-9][a-z0-9-]{0,31}. Default slipway.
	Prefix string
	// Queues are the queues that Setup makes lanes for and Depth reports. Default: job.DefaultQueue.
	Queues []string
	// Timing holds the clocks. Default: job.DefaultTiming.
	Timing job.Timing
	// Replicas of each stream that Setup makes: 1, 3 or 5. Default 1. A stream that exists keeps its own number.
	Replicas int
	// The limits below are those of the streams that Setup makes. A stream that exists keeps its own: Limits tells where they
	// differ, and SetLimits changes them.

	// The limits in bytes together are what the queue takes of the server's store at most, and what Setup reserves there. So
	// no job that is put into the queue takes the room that the work on the others needs.

	// MaxJobs bounds the jobs that wait in a queue or run. Default 1,000,000. A job above it is refused; no accepted job
	// is dropped. Jobs whose time has not come do not count.
	MaxJobs int64
	// MaxJobBytes bounds the bytes of the specs of these jobs. Default 256 MiB.
	MaxJobBytes int64
	// MaxScheduledBytes bounds the bytes of the specs of the jobs whose time has not come. Default 256 MiB. A job above it is
	// refused by Submit: the server can't do it, since a stream that takes schedules drops its oldest messages at a limit.
	MaxScheduledBytes int64
	// EventsAge is how long events are kept. Default 24 h.
	EventsAge time.Duration
	// EventsBytes bounds the bytes of all events; the oldest go first. Default 256 MiB.
	EventsBytes int64
	// ResultsAge is how long results, and the records of decided jobs, are kept. Default 30 days.
	ResultsAge time.Duration
	// ResultsBytes bounds the bytes of all results; the oldest go first, and their records still tell how the jobs ended.
	// Default 1 GiB.
	ResultsBytes int64
	// DeadBytes bounds the bytes of all dead letters. Default 128 MiB. None is dropped: above it, a job that slipway gave up
	// on keeps its token until there is room for its letter.
	DeadBytes int64
	// RecordsBytes bounds the bytes of all records. Default 512 MiB. A quarter of it is kept for jobs that were accepted
	// already: new ones are refused while the records have less.
	RecordsBytes int64
	// CrashBudget is how many deaths of a worker a job survives. Default 3; a negative number means 0.
	CrashBudget int
	// OnError is called with what goes wrong in the background, from many goroutines at once. It must not block. Optional.
	OnError func(error)
}

// The defaults of Config.
const (
	DefaultMaxJobs           = 1_000_000
	DefaultMaxJobBytes       = 256 << 20
	DefaultMaxScheduledBytes = 256 << 20
	DefaultEventsAge         = 24 * time.Hour
	DefaultEventsBytes       = 256 << 20
	DefaultResultsAge        = 30 * 24 * time.Hour
	DefaultResultsBytes      = 1 << 30
	DefaultDeadBytes         = 128 << 20
	DefaultRecordsBytes      = 512 << 20
	DefaultCrashBudget       = 3
)

var queueName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// withDefaults fills the zero fields of c.
func (c Config) withDefaults() Config {
	set(&c.Name, "slipway")
	set(&c.Prefix, "slipway")
	set(&c.Timing, job.DefaultTiming())
	set(&c.Replicas, 1)
	set(&c.MaxJobs, DefaultMaxJobs)
	set(&c.MaxJobBytes, DefaultMaxJobBytes)
	set(&c.EventsAge, DefaultEventsAge)
	set(&c.EventsBytes, DefaultEventsBytes)
	set(&c.ResultsAge, DefaultResultsAge)
	set(&c.MaxScheduledBytes, DefaultMaxScheduledBytes)
	set(&c.ResultsBytes, DefaultResultsBytes)
	set(&c.DeadBytes, DefaultDeadBytes)
	set(&c.RecordsBytes, DefaultRecordsBytes)
	set(&c.CrashBudget, DefaultCrashBudget)
	c.CrashBudget = max(c.CrashBudget, 0)
	if len(c.Queues) == 0 {
		c.Queues = []string{job.DefaultQueue}
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate names the first setting that makes no sense.
func (c Config) validate() error {
	if c.InProcess == nil {
		if err := CheckURL(c.URL); err != nil {
			return fmt.Errorf("setting URL: %w", err)
		}
	}
	if err := CheckPrefix(c.Prefix); err != nil {
		return fmt.Errorf("setting Prefix: %w", err)
	}
	if err := CheckQueues(c.Queues); err != nil {
		return fmt.Errorf("setting Queues: %w", err)
	}
	if err := CheckReplicas(c.Replicas); err != nil {
		return fmt.Errorf("setting Replicas: %w", err)
	}
	if c.InboxPrefix != "" {
		if err := CheckInboxPrefix(c.InboxPrefix); err != nil {
			return fmt.Errorf("setting InboxPrefix: %w", err)
		}
	}
	if c.MaxJobs < 0 || c.MaxJobBytes < 0 || c.EventsBytes < 0 || c.EventsAge < 0 || c.ResultsAge < time.Second {
		return errors.New("settings MaxJobs, MaxJobBytes, EventsBytes, EventsAge and ResultsAge must be positive, ResultsAge at least 1 s")
	}
	if min(c.MaxScheduledBytes, c.ResultsBytes, c.DeadBytes, c.RecordsBytes) < job.MaxSpecBytes {
		return fmt.Errorf("settings MaxScheduledBytes, ResultsBytes, DeadBytes and RecordsBytes must be at least %d, which one job can have", job.MaxSpecBytes)
	}
	return c.Timing.Validate()
}

// checkFiles names the setting of a file that can't be used.
func (c Config) checkFiles() error {
	for _, file := range []struct {
		field, name string
		check       func(string) error
	}{{"CredsFile", c.CredsFile, CheckCreds}, {"NkeyFile", c.NkeyFile, CheckNkey}, {"CAFile", c.CAFile, CheckCA}} {
		if file.name == "" {
			continue
		}
		if err := file.check(file.name); err != nil {
			return fmt.Errorf("%s: %w", file.field, err)
		}
	}
	if c.CredsFile != "" && c.NkeyFile != "" {
		return errors.New("CredsFile and NkeyFile exclude each other")
	}
	if c.CertFile == "" && c.KeyFile == "" {
		return nil
	}
	if err := CheckCert(c.CertFile, c.KeyFile); err != nil {
		return fmt.Errorf("CertFile and KeyFile: %w", err)
	}
	return nil
}

// workerTTL is how long a worker counts as alive without news of it. The server
// knows whole seconds only.
func (c Config) workerTTL() time.Duration {
	return max(time.Second, c.Timing.DeadMan.Round(time.Second))
}

// longDelay is the delay from which on a token waits in SCHED instead of its lane. A lane keeps delays in memory, and
// rounds them at a restart of the server. The bound is shorter where the clocks are, as they are in tests.
func (c Config) longDelay() time.Duration { return min(time.Minute, c.Timing.AckWait) }
