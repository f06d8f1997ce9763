package main

import (
	"fmt"

	"slipway/cmd/internal/settings"
	"slipway/internal/size"
	"slipway/job/natsqueue"
	"slipway/runner"
)

// jobLogs bounds what is kept of what jobs print.
type jobLogs struct {
	step, job int64 // of the stored logs
	live      int64 // of the events of one job; 0: a share of the stream
}

// leastLog is the smallest limit: a log below it would have little more than the result has.
const leastLog = 64 << 10

// liveShare is what one job may take of the stream of events.
const liveShare = 64

// addJobLogs adds the limits. events is the size of the stream of events, nil where that is not a setting.
func addJobLogs(set *settings.Set, c *jobLogs, events *int64) {
	atLeastLog := func(n *int64) func() error {
		return func() error {
			if *n < leastLog {
				return fmt.Errorf("want at least %s, not %s", size.Format(leastLog), size.Format(*n))
			}
			return nil
		}
	}
	set.Size(&c.step, "job_logs.step_limit", runner.DefaultStepLogLimit, "most bytes of one step's log in the store; of more it keeps beginning and end").
		Check(atLeastLog(&c.step))
	set.Size(&c.job, "job_logs.limit", runner.DefaultJobLogLimit, "most bytes of all logs of one job in the store").
		Check(atLeastLog(&c.job))
	set.Together(func() error {
		if c.job < c.step {
			return fmt.Errorf("job_logs.limit (%s) is less than job_logs.step_limit (%s)", size.Format(c.job), size.Format(c.step))
		}
		return nil
	}, "job_logs.step_limit", "job_logs.limit")
	usage := "most bytes of one job's events, so that no job pushes out those of others; 0: a share of what the queue keeps"
	if events != nil {
		usage = fmt.Sprintf("most bytes of one job's events, so that no job pushes out those of others; 0: a %dth of nats.events_bytes", liveShare)
	}
	set.Size(&c.live, "job_logs.live_limit", 0, usage).Check(func() error {
		if c.live == 0 {
			return nil
		}
		return atLeastLog(&c.live)()
	})
	if events == nil {
		return
	}
	set.Together(func() error {
		if c.live > *events/4 {
			return fmt.Errorf("job_logs.live_limit (%s) is more than a quarter of nats.events_bytes (%s): few jobs would push out the events of all others", size.Format(c.live), size.Format(*events))
		}
		return nil
	}, "job_logs.live_limit", "nats.events_bytes")
}

// apply gives cfg the limits. events is the size of the stream of events, of which one job may take a share-th.
func (c jobLogs) apply(cfg *runner.Config, events, share int64) {
	cfg.StepLogLimit, cfg.JobLogLimit, cfg.LiveLimit = c.step, c.job, c.live
	if c.live == 0 {
		if events == 0 {
			events = natsqueue.DefaultEventsBytes
		}
		cfg.LiveLimit = max(events/share, leastLog)
	}
}
