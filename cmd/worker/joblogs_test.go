package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"slipway/runner"
)

// TestJobLogs: what is set reaches the worker; what one job may take of the stream of events follows the stream's size.
func TestJobLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		args            []string
		step, job, live int64
	}{
		"defaults":         {nil, runner.DefaultStepLogLimit, runner.DefaultJobLogLimit, runner.DefaultLiveLimit},
		"all set":          {[]string{"--job-logs-step-limit=1MiB", "--job-logs-limit=2MiB", "--job-logs-live-limit=3MiB"}, 1 << 20, 2 << 20, 3 << 20},
		"a small stream":   {[]string{"--nats-events-bytes=64MiB"}, runner.DefaultStepLogLimit, runner.DefaultJobLogLimit, 1 << 20},
		"a tiny stream":    {[]string{"--nats-events-bytes=1MiB"}, runner.DefaultStepLogLimit, runner.DefaultJobLogLimit, leastLog},
		"a quarter of one": {[]string{"--nats-events-bytes=8MiB", "--job-logs-live-limit=2MiB"}, runner.DefaultStepLogLimit, runner.DefaultJobLogLimit, 2 << 20},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		c := addConfig(flags)
		if err := flags.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		if err := c.load(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var cfg runner.Config
		c.jobLogs.apply(&cfg, c.nats.Worker.EventsBytes, liveShare)
		if cfg.StepLogLimit != tc.step || cfg.JobLogLimit != tc.job || cfg.LiveLimit != tc.live {
			t.Errorf("%s: got %d, %d and %d; want %d, %d and %d", name, cfg.StepLogLimit, cfg.JobLogLimit, cfg.LiveLimit, tc.step, tc.job, tc.live)
		}
	}
}

// TestJobLogs_Refused: limits that contradict each other are refused, by their names.
func TestJobLogs_Refused(t *testing.T) {
	for want, args := range map[string][]string{
		"less than job_logs.step_limit":      {"--job-logs-limit=1MiB"},
		"more than a quarter of nats.events": {"--nats-events-bytes=8MiB", "--job-logs-live-limit=3MiB"},
	} {
		_, errOut, code := setup(t).run(append([]string{"config"}, args...)...)
		if code != 2 || !strings.Contains(errOut, want) || !strings.Contains(errOut, strings.Split(args[len(args)-1], "=")[0]) {
			t.Errorf("%v: code %d, stderr %q, want 2, the flag and %q", args, code, errOut, want)
		}
	}
}
