package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/live"
	"slipway/cmd/internal/settings"
	"slipway/job"
	"slipway/runner"
)

// config is everything that serve can be told.
type config struct {
	file string
	set  *settings.Set

	name   string
	slots  int
	queues []string
	policy string
	nats   cli.NATS
	s3     s3Config
	docker dockerConfig

	metricsAddr string
	softStop    time.Duration
	log         logConfig
}

type s3Config struct {
	endpoint, region, bucket, accessKey, secretKey, prefix string
	pathStyle, createBucket                                bool
}

type dockerConfig struct{ host string }

type logConfig struct{ level, format string }

// addConfig adds the settings of a worker to flags.
func addConfig(flags *pflag.FlagSet) *config {
	c := &config{}
	flags.StringVar(&c.file, "config", "", "YAML `file` with settings (SLIPWAY_CONFIG)")
	set := settings.New(flags)
	c.set = set
	set.String(&c.name, "name", "", "tells this worker from all others; default: the host's name and a random part")
	set.Int(&c.slots, "slots", 0, "how many jobs run at once; 0: one per processor")
	set.Strings(&c.queues, "queues", []string{job.DefaultQueue}, "the queues to serve")
	set.String(&c.policy, "policy", "", "YAML file that says what jobs may ask for; without one everything is closed")
	c.nats.Register(set)
	set.Int(&c.nats.Replicas, "nats.replicas", 1, "copies of each stream, when this worker makes them: 1, 3 or 5")
	set.String(&c.s3.endpoint, "s3.endpoint", "", "URL of the S3 service; empty: Amazon's")
	set.String(&c.s3.region, "s3.region", "us-east-1", "region of the bucket")
	set.String(&c.s3.bucket, "s3.bucket", "", "bucket for workspaces, inputs and logs; empty: no store, jobs that need one are refused")
	set.String(&c.s3.prefix, "s3.prefix", "", "put before every key in the bucket; ends with a slash")
	set.Bool(&c.s3.pathStyle, "s3.path_style", true, "bucket in the URL's path, not in the host's name")
	set.Bool(&c.s3.createBucket, "s3.create_bucket", false, "make the bucket if it is missing")
	set.Secret(&c.s3.accessKey, "s3.access_key", "access key").AlsoEnv("AWS_ACCESS_KEY_ID")
	set.Secret(&c.s3.secretKey, "s3.secret_key", "secret key").AlsoEnv("AWS_SECRET_ACCESS_KEY")
	addDocker(set, &c.docker)
	set.String(&c.metricsAddr, "metrics.addr", "127.0.0.1:9464", "where /metrics, /livez and /readyz are served; off: nowhere")
	set.Duration(&c.softStop, "soft_stop", runner.DefaultSoftStop, "how long running jobs may go on after a first SIGTERM")
	addTiming(set, &c.nats.Timing)
	addLog(set, &c.log, "json")
	return c
}

func addDocker(set *settings.Set, c *dockerConfig) {
	set.String(&c.host, "docker.host", "", "where the container engine is; default: unix:///var/run/docker.sock").AlsoEnv("DOCKER_HOST")
}

func addLog(set *settings.Set, c *logConfig, format string) {
	set.String(&c.level, "log.level", "info", "debug, info, warn or error")
	set.String(&c.format, "log.format", format, "json or text")
}

func addTiming(set *settings.Set, t *job.Timing) {
	def := job.DefaultTiming()
	set.Duration(&t.DeadMan, "timing.dead_man", def.DeadMan, "a box ends by itself after this time without a sign of its worker; less than lease")
	set.Duration(&t.Lease, "timing.lease", def.Lease, "a worker gives a job up after this time without a confirmation; less than ack_wait")
	set.Duration(&t.AckWait, "timing.ack_wait", def.AckWait, "another worker gets the job after this time; the same for all workers of a queue")
	set.Duration(&t.Heartbeat, "timing.heartbeat", def.Heartbeat, "how often a worker confirms that it is there; at most half of lease")
}

// load gives every setting its value.
func (c *config) load(environ []string) error {
	if c.file == "" {
		c.file, _ = settings.Env(environ, settings.EnvPrefix+"CONFIG")
	}
	var file io.Reader
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return exit.Usagef("--config: %w", err)
		}
		defer f.Close()
		file = f
	}
	if err := c.set.Resolve(environ, c.file, file); err != nil {
		return exit.UsageError(err)
	}
	return c.validate()
}

// validate finds what no single setting can know.
func (c *config) validate() error {
	if err := c.nats.Timing.Validate(); err != nil {
		return exit.UsageError(err)
	}
	switch {
	case c.slots < 0:
		return exit.Usagef("slots: %d: must not be negative", c.slots)
	case c.s3.bucket == "" && c.s3.endpoint != "":
		return exit.Usagef("s3.endpoint is set, but s3.bucket is not: name the bucket with --s3-bucket or SLIPWAY_S3_BUCKET")
	case (c.s3.accessKey == "") != (c.s3.secretKey == ""):
		return exit.Usagef("s3.access_key and s3.secret_key go together: set SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, or neither")
	}
	if _, err := newLogger(c.log, io.Discard); err != nil {
		return err
	}
	return nil
}

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show all settings in force, and where each came from", Args: cobra.NoArgs,
		Long: `config shows all settings as serve would use them, with the same flags, variables and file, and
says where each came from. Secrets are masked. With --output json it prints
[{"key":…,"value":…,"source":…,"flag":…,"env":…}].`,
		Example: "  SLIPWAY_SLOTS=4 worker config --config worker.yaml",
	}
	c := addConfig(cmd.Flags())
	output := cli.AddOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := c.load(a.sys.Environ); err != nil {
			return err
		}
		for _, name := range c.unknownEnv(a.sys.Environ) {
			fmt.Fprintf(a.sys.Err, "variable %s is set, but there is no such setting\n", name)
		}
		return c.print(a.sys.Out, *output)
	}
	return cmd
}

func (c *config) unknownEnv(environ []string) []string {
	var out []string
	for _, name := range c.set.UnknownEnv(environ) {
		if name != settings.EnvPrefix+"CONFIG" {
			out = append(out, name)
		}
	}
	return out
}

func (c *config) print(w io.Writer, output cli.Output) error {
	type row struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Source string `json:"source"`
		Flag   string `json:"flag,omitempty"`
		Env    string `json:"env"`
	}
	var rows []row
	for _, s := range c.set.List() {
		rows = append(rows, row{s.Key, live.Line(s.Display()), s.Source(), s.Flag(), s.Env()})
	}
	if output == cli.JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "SETTING\tVALUE\tSOURCE")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Key, r.Value, r.Source)
	}
	return tw.Flush()
}
