package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway/container"
	"slipway/job"
	"slipway/job/jobyaml"
)

// policyFile is the form of a policy in its file, see docs/policy.md.
type policyFile struct {
	Allow    []container.Relaxation `json:"allow"`
	Always   []container.Relaxation `json:"always"`
	Images   []string               `json:"images"`
	Max      resources              `json:"max"`
	Defaults resources              `json:"defaults"`
}

// resources are written as in a job: numbers, and sizes such as 4GiB.
type resources struct {
	CPUs   float64   `json:"cpus"`
	Memory job.Bytes `json:"memory"`
	Pids   int64     `json:"pids"`
	Disk   job.Bytes `json:"disk"`
	Tmp    job.Bytes `json:"tmp"`
	Shm    job.Bytes `json:"shm"`
	Files  int64     `json:"files"`
}

func (r resources) spec() container.Resources {
	return container.Resources{
		CPUs: r.CPUs, Memory: int64(r.Memory), Pids: r.Pids, Disk: int64(r.Disk), Tmp: int64(r.Tmp), Shm: int64(r.Shm), Files: r.Files,
	}
}

// policyConfig is what jobs may ask for, and what one gets that asks for nothing; the
// rest is container.DefaultResources, cut to the policy.
type policyConfig struct {
	file     string
	policy   container.Policy
	defaults container.Resources
}

// load reads the file. Without one everything is closed.
func (c *policyConfig) load() error {
	if c.file == "" {
		return nil
	}
	data, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	c.policy, c.defaults, err = parsePolicy(data)
	var many job.Errors
	if !errors.As(err, &many) {
		return err // no mistake in the file, mostly none at all
	}
	lines := make([]string, len(many))
	for i, one := range many {
		lines[i] = one.In(c.file)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// parsePolicy reads a policy as strictly as a job is read. Its error is job.Errors.
func parsePolicy(data []byte) (container.Policy, container.Resources, error) {
	root, err := jobyaml.Parse(data)
	if one := (*job.FieldError)(nil); errors.As(err, &one) {
		return container.Policy{}, container.Resources{}, job.Errors{one}
	}
	if err != nil || root.Kind == job.NodeNull {
		return container.Policy{}, container.Resources{}, err
	}
	var f policyFile
	if err := root.Fill(&f, f.check); err != nil {
		return container.Policy{}, container.Resources{}, err
	}
	return f.policy(), f.Defaults.spec(), nil
}

func (f *policyFile) policy() container.Policy {
	return container.Policy{Allow: f.Allow, Always: f.Always, Images: f.Images, Max: f.Max.spec()}
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
