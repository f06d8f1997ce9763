package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"slipway/cmd/internal/exit"
	"slipway/container"
	"slipway/job"
)

// policyFile is the form of a policy in its file, see docs/policy.md.
type policyFile struct {
	Allow    []container.Relaxation `yaml:"allow"`
	Always   []container.Relaxation `yaml:"always"`
	Images   []string               `yaml:"images"`
	Max      resources              `yaml:"max"`
	Defaults resources              `yaml:"defaults"`
}

// resources are written as in a job: numbers, and sizes such as 4GiB.
type resources struct {
	CPUs   float64 `yaml:"cpus"`
	Memory size    `yaml:"memory"`
	Pids   int64   `yaml:"pids"`
	Disk   size    `yaml:"disk"`
	Tmp    size    `yaml:"tmp"`
	Shm    size    `yaml:"shm"`
	Files  int64   `yaml:"files"`
}

// size reads a job.Bytes; a bare number is bytes.
type size int64

// UnmarshalYAML accepts what a job accepts.
func (s *size) UnmarshalYAML(n *yaml.Node) error {
	var b job.Bytes
	if err := b.UnmarshalText([]byte(n.Value)); err != nil {
		return err // the decoder adds the line
	}
	*s = size(b)
	return nil
}

func (r resources) spec() container.Resources {
	return container.Resources{
		CPUs: r.CPUs, Memory: int64(r.Memory), Pids: r.Pids, Disk: int64(r.Disk), Tmp: int64(r.Tmp), Shm: int64(r.Shm), Files: r.Files,
	}
}

// loadPolicy reads the policy in the file called name, and what it says about the resources of a job
// that asks for none; the rest is container.DefaultResources, cut to the policy. Without a name everything is closed.
func loadPolicy(name string) (container.Policy, container.Resources, error) {
	if name == "" {
		return container.Policy{}, container.Resources{}, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return container.Policy{}, container.Resources{}, exit.Usagef("--policy: %w", err)
	}
	p, defaults, err := parsePolicy(data)
	if err != nil {
		return p, defaults, exit.Usagef("%s: %w", name, err)
	}
	return p, defaults, nil
}

func parsePolicy(data []byte) (container.Policy, container.Resources, error) {
	var f policyFile
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return container.Policy{}, container.Resources{}, explainYAML(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return container.Policy{}, container.Resources{}, errors.New("more than one document")
	}
	p := container.Policy{Allow: f.Allow, Always: f.Always, Images: f.Images, Max: f.Max.spec()}
	if err := p.Validate(); err != nil {
		return container.Policy{}, container.Resources{}, err
	}
	return p, f.Defaults.spec(), nil
}

// explainYAML takes our Go types out of the decoder's words.
func explainYAML(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: construct errors: ")
	for _, typ := range []any{policyFile{}, resources{}} {
		text = strings.ReplaceAll(text, fmt.Sprintf(" not found in type %T", typ), ": no such key; docs/policy.md has them all")
	}
	return errors.New(text)
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
