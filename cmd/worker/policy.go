package main

import (
	"slipway/container"
	"slipway/container/policyfile"
)

// policyConfig is the setting policy, and what the file says.
type policyConfig struct {
	file     string
	policy   container.Policy
	defaults container.Resources // for a job that asks for none
}

// load reads the file. Without one the policy is closed.
func (c *policyConfig) load() (err error) {
	if c.file != "" {
		c.policy, c.defaults, err = policyfile.Load(c.file)
	}
	return err
}

// openPolicy lets a job ask for everything: for one's own jobs on one's own machine.
func openPolicy() container.Policy {
	return container.Policy{
		Allow: container.Relaxations(),
		Max: container.Resources{
			CPUs: 1 << 10, Memory: 1 << 44, Pids: 1 << 20, Disk: 1 << 44, Tmp: 1 << 44, Shm: 1 << 44, Files: 1 << 20,
		},
	}
}
