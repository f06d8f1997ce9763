package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/settings"
	"slipway/container"
	"slipway/container/local"
	"slipway/internal/hint"
)

// toolConfig is what dev and run can be told.
type toolConfig struct {
	set        *settings.Set
	data       string
	devserver  string // folder of the servers' programs; empty: their usual place
	allowLocal bool
	policy     policyConfig
	slots      int
	jobLogs    jobLogs
	docker     dockerConfig
	log        logConfig
}

// unisolated is what --allow-local does to steps.
const unisolated = "as plain processes on this machine, as you (if you are root: as the job's user), unisolated"

// addToolConfig adds the flags of dev and run. servers is the programs that the command starts.
func addToolConfig(cmd *cobra.Command, level, data, servers string) *toolConfig {
	t := &toolConfig{}
	t.set = settings.New(cmd.Flags())
	cmd.Flags().StringVar(&t.data, "data", "", data)
	cmd.Flags().BoolVar(&t.allowLocal, "allow-local", false, "run the steps "+unisolated)
	t.set.String(&t.devserver, "devserver", "", "`folder` of "+servers+"; default: that of this program, else PATH")
	addPolicy(t.set, &t.policy, "they may ask for everything")
	addDocker(t.set, &t.docker)
	addJobLogs(t.set, &t.jobLogs, nil)
	addLog(t.set, &t.log, "text")
	t.set.Lookup("log.level").Default(level)
	return t
}

func (t *toolConfig) load(environ []string) error {
	if err := t.set.Resolve(environ, "", nil); err != nil {
		return exit.UsageError(err)
	}
	return nil
}

// provider is the engine, or, if that was allowed, this machine itself.
func (t *toolConfig) provider(ctx context.Context) (container.Provider, error) {
	if t.allowLocal {
		p, err := local.New(local.Config{AllowLocal: true}) // not below a data folder that steps of another user could not enter
		if err != nil {
			return nil, fmt.Errorf("run without isolation (--allow-local): %w", err)
		}
		return p, nil
	}
	p, err := t.docker.open(ctx)
	if errors.Is(err, errNoEngine) {
		return nil, hint.With(err, "%s. Without an engine, --allow-local runs the steps %s. Only for jobs that you trust", hint.Of(err), unisolated)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// apply gives s what t says about it.
func (t *toolConfig) apply(s *service) {
	s.slots, s.jobLogs = t.slots, t.jobLogs
	if t.policy.file != "" {
		s.policy, s.defaults = t.policy.policy, t.policy.defaults
	}
}

// confess says what protection the jobs' steps do not meet.
func (t *toolConfig) confess(say func(format string, args ...any)) {
	switch {
	case t.allowLocal:
		say("no isolation: steps run as plain processes on this machine")
	case t.policy.file == "":
		say("open policy: jobs may ask for network, root and any amount of memory; --policy FILE says otherwise")
	default:
		say("policy of %s", t.policy.file)
	}
}
