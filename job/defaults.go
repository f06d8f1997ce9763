package job

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// Defaults that apply where a job says nothing, beside those of job.go.
const (
	defaultUser = "1000:1000"
	defaultMode = Mode(0o644)
)

// DefaultShell returns the program and its arguments that a run step's script is handed to.
func DefaultShell() []string { return []string{"/bin/sh", "-e", "-c"} }

// WithDefaults returns a deep copy of j in which every field that has a default
// of its own is set. What the engine or the worker decides stays empty:
// Platform, Resources, a step's Timeout and Dir. The ID is not made up either.
// It is idempotent, and a valid job stays valid.
func (j *Job) WithDefaults() *Job {
	c := j.Clone()
	c.Version = cmp.Or(c.Version, Version)
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	c.Priority = cmp.Or(c.Priority, PriorityNormal)
	c.Pull = cmp.Or(c.Pull, PullMissing)
	c.User = cmp.Or(c.User, defaultUser)
	c.Workdir = cmp.Or(c.Workdir, DefaultWorkdir)
	c.Network = cmp.Or(c.Network, NetworkNone)
	c.Timeout = cmp.Or(c.Timeout, Duration(DefaultTimeout))
	c.Retry.setDefaults()
	if w := c.Workspace; w != nil && w.Prefix != "" {
		w.Pull = cmp.Or(w.Pull, WorkspacePullAlways)
		w.Push = cmp.Or(w.Push, WorkspacePushOnSuccess)
	}
	for i := range c.Inputs {
		c.Inputs[i].Mode = cmp.Or(c.Inputs[i].Mode, defaultMode)
	}
	for i := range c.Steps {
		c.Steps[i].setDefaults(i, c.User)
	}
	return c
}

func (s *Step) setDefaults(index int, user string) {
	s.Name = cmp.Or(s.Name, strconv.Itoa(index+1))
	s.If = cmp.Or(s.If, IfSuccess)
	s.Retry.setDefaults()
	if s.Write != nil {
		s.Write.Mode = cmp.Or(s.Write.Mode, defaultMode)
	}
	if s.Run != "" && len(s.Shell) == 0 {
		s.Shell = DefaultShell()
	}
	if !s.isProcess() {
		return
	}
	s.User = cmp.Or(s.User, user)
	if s.Grace == nil {
		grace := Duration(DefaultGrace)
		s.Grace = &grace
	}
}

func (r *Retry) setDefaults() {
	r.Attempts = cmp.Or(r.Attempts, 1)
	r.Backoff = cmp.Or(r.Backoff, Duration(DefaultBackoff))
}

// Clone returns a deep copy of j.
func (j *Job) Clone() *Job {
	c := *j
	c.Labels = maps.Clone(j.Labels)
	c.Env = maps.Clone(j.Env)
	c.Workspace = clonePtr(j.Workspace)
	c.Relax = slices.Clone(j.Relax)
	c.Inputs = slices.Clone(j.Inputs)
	for i := range c.Inputs {
		in := &c.Inputs[i]
		in.Content = clonePtr(in.Content)
		in.ContentBase64 = slices.Clone(in.ContentBase64)
	}
	c.Steps = slices.Clone(j.Steps)
	for i := range c.Steps {
		c.Steps[i] = c.Steps[i].clone()
	}
	return &c
}

func (s Step) clone() Step {
	s.Command = slices.Clone(s.Command)
	s.Shell = slices.Clone(s.Shell)
	s.Env = maps.Clone(s.Env)
	s.Stdin = clonePtr(s.Stdin)
	s.Grace = clonePtr(s.Grace)
	if s.Write = clonePtr(s.Write); s.Write != nil {
		s.Write.Content = clonePtr(s.Write.Content)
		s.Write.ContentBase64 = slices.Clone(s.Write.ContentBase64)
	}
	return s
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
