package main

import (
	"cmp"
	"fmt"
	"time"

	"slipway/cmd/internal/settings"
	"slipway/internal/size"
	"slipway/runner"
)

// limits bound what one attempt may take, and how often a job is tried again after failures that are not its own.
type limits struct {
	pull, sync, cleanup time.Duration
	infraBudget         int
	infraBackoff        time.Duration
	excerpt             int64
}

func addLimits(set *settings.Set, c *limits) {
	set.Size(&c.excerpt, "job_logs.excerpt", runner.DefaultExcerpt, "most bytes of the head, and of the tail, of a step's output in the result").Check(func() error {
		if c.excerpt < 1 || c.excerpt > runner.MaxExcerpt {
			return fmt.Errorf("want 1B to %s, not %s", size.Format(runner.MaxExcerpt), size.Format(c.excerpt))
		}
		return nil
	})
	for _, d := range []struct {
		p          *time.Duration
		key, usage string
		def        time.Duration
	}{
		{&c.pull, "pull_timeout", "longest pull of an image", runner.DefaultPullTimeout},
		{&c.sync, "sync_timeout", "longest pull or push of a workspace", runner.DefaultSyncTimeout},
		{&c.cleanup, "cleanup_timeout", "longest teardown of one attempt", runner.DefaultCleanupTimeout},
	} {
		set.Duration(d.p, d.key, d.def, d.usage).Check(func() error { return atLeast(time.Second, *d.p) })
	}
	set.Int(&c.infraBudget, "infra_budget", runner.DefaultInfraBudget, "how many failures of engine, store or registry a job survives").
		Check(func() error { return atLeast(0, c.infraBudget) })
	set.Duration(&c.infraBackoff, "infra_backoff", runner.DefaultInfraBackoff, "wait after the first such failure; it doubles up to 5m").
		Check(func() error { return atLeast(100*time.Millisecond, c.infraBackoff) })
}

// apply gives cfg the limits. The zero value leaves the runner's own.
func (c limits) apply(cfg *runner.Config) {
	if c == (limits{}) {
		return
	}
	cfg.PullTimeout, cfg.SyncTimeout, cfg.CleanupTimeout = c.pull, c.sync, c.cleanup
	cfg.InfraBudget, cfg.InfraBackoff = cmp.Or(c.infraBudget, -1), c.infraBackoff // a Config's word for none
	cfg.Excerpt = int(c.excerpt)
}
