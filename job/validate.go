package job

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"slipway/internal/document"
	"slipway/internal/suggest"
)

// Bounds of resources and times. A worker's policy may be stricter.
const (
	MinCPUs      = 0.01
	MaxCPUs      = 4096
	MinMemory    = 16 << 20 // bytes; less does not hold the supervisor
	MinPids      = 32       // the supervisor's own threads are among them
	MaxPids      = 1 << 22
	MinDisk      = 1 << 20 // bytes
	MinTmp       = 1 << 20 // bytes
	MinShm       = 64 << 10
	MaxSize      = 1 << 50              // bytes, of any resource
	MaxGrace     = 10 * time.Minute     // of a step
	MaxBackoff   = 5 * time.Minute      // of a retry
	maxNotBefore = 366 * 24 * time.Hour // from now
)

// Validate checks a job that was built in code by the rules that Decode applies.
// Its error is Errors, with the path of every wrong field.
func (j *Job) Validate() error {
	var m document.Mistakes
	j.check(&m)
	return m.Err()
}

// check adds what is wrong with j.
func (j *Job) check(m *document.Mistakes) {
	c := checker{m}
	c.identity(j)
	c.box(j)
	c.duration(j.Timeout, "timeout", MinTimeout, MaxTimeout)
	c.notBefore(j.NotBefore)
	c.retry(&j.Retry, "retry")
	c.workspace(j.Workspace, j.Resources.Disk)
	c.inputs(j.Inputs)
	c.steps(j.Steps)
}

// checker holds the rules of a job and the mistakes that they find.
type checker struct{ *document.Mistakes }

// failIf adds the mistake that a check of grammar.go found, if any.
func (c *checker) failIf(path, message string) {
	if message != "" {
		c.Fail(path, "%s", message)
	}
}

func (c *checker) identity(j *Job) {
	if j.Version != "" && j.Version != Version {
		c.Fail("version", "%s", wrongVersion(j.Version))
	}
	c.match(string(j.ID), "id", idRE, "a ULID (26 characters of 0-9 and A-Z without I, L, O, U)")
	c.failIf("name", checkName(j.Name))
	c.match(j.Queue, "queue", queueRE, `a queue's name such as "default" (a-z, 0-9 and '-', at most 32)`)
	enum(c, j.Priority, "priority", Priorities())
	if len(j.Labels) > MaxLabels {
		c.Fail("labels", "%d labels, more than %d", len(j.Labels), MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(j.Labels)) {
		c.label(key, j.Labels[key])
	}
}

func (c *checker) label(key, value string) {
	path := document.KeyPath("labels", key)
	if !labelRE.MatchString(key) {
		c.Fail(path, "a label's name has at most 63 of A-Z, a-z, 0-9, '.', '_', '-' and '/', and starts with a letter or digit")
	}
	switch {
	case len(value) > MaxLabelBytes:
		c.Fail(path, "longer than %d bytes", MaxLabelBytes)
	case !utf8.ValidString(value):
		c.Fail(path, "not UTF-8")
	case strings.ContainsFunc(value, steersTerminal):
		c.Fail(path, "must not contain control characters")
	}
}

func (c *checker) box(j *Job) {
	if j.Image == "" {
		c.Missing("image", `: the container image to run in, such as "golang:1.26"`)
	} else {
		c.failIf("image", checkImage(j.Image))
	}
	c.match(j.Platform, "platform", platformRE, `a Linux platform such as "linux/amd64" or "linux/arm/v7"`)
	enum(c, j.Pull, "pull", pullPolicies())
	if j.User != "" {
		c.failIf("user", checkUser(j.User))
	}
	if j.Workdir != "" {
		c.failIf("workdir", checkWorkdir(j.Workdir))
	}
	c.env(j.Env, "env")
	if j.Network == "egress" {
		c.Fail("network", `"egress" is not supported by this version: use "none" or "open"`)
	} else {
		enum(c, j.Network, "network", networks())
	}
	for i, r := range j.Relax {
		path := fmt.Sprintf("relax[%d]", i)
		if slices.Contains(j.Relax[:i], r) {
			c.Fail(path, "%s is there twice", document.Quote(string(r)))
		}
		if r == "" {
			c.Fail(path, "must not be empty")
		}
		enum(c, r, path, relaxations())
	}
	c.resources(&j.Resources)
}

// env checks names, sizes and numbers of a map of variables.
func (c *checker) env(env map[string]string, path string) {
	if len(env) > MaxEnvVars {
		c.Fail(path, "%d variables, more than %d", len(env), MaxEnvVars)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		total += len(name) + len(value)
		if !envNameRE.MatchString(name) {
			c.Fail(document.KeyPath(path, name), "not a variable's name: letters, digits and '_', not starting with a digit, at most 128")
		}
		if len(value) > MaxEnvValue {
			c.Fail(document.KeyPath(path, name), "%d bytes, more than %d: put it into an input file", len(value), MaxEnvValue)
		}
		c.failIf(document.KeyPath(path, name), checkText(value))
	}
	if total > MaxEnvBytes {
		c.Fail(path, "%d bytes of names and values in all, more than %d: put large values into input files", total, MaxEnvBytes)
	}
}

func (c *checker) resources(r *Resources) {
	if r.CPUs != 0 && !(r.CPUs >= MinCPUs && r.CPUs <= MaxCPUs) { // NaN is neither
		c.Fail("resources.cpus", "must be %v to %v, not %v", MinCPUs, MaxCPUs, r.CPUs)
	}
	if r.Pids != 0 && (r.Pids < MinPids || r.Pids > MaxPids) {
		c.Fail("resources.pids", "must be %d to %d, not %d", MinPids, MaxPids, r.Pids)
	}
	c.size(r.Memory, "resources.memory", MinMemory)
	c.size(r.Disk, "resources.disk", MinDisk)
	c.size(r.Tmp, "resources.tmp", MinTmp)
	c.size(r.Shm, "resources.shm", MinShm)
	c.fits(r.Tmp, r.Memory, "resources.tmp")
	c.fits(r.Shm, r.Memory, "resources.shm")
}

// fits refuses a memory-backed folder that is larger than the memory it counts towards.
func (c *checker) fits(part, memory Bytes, path string) {
	if memory >= MinMemory && part > memory && part <= MaxSize {
		c.Fail(path, "%v is more than resources.memory (%v), which it counts towards", part, memory)
	}
}

func (c *checker) size(b Bytes, path string, least Bytes) {
	switch {
	case b == 0 || b >= least && b <= MaxSize:
	case b > 0 && b < 1<<16:
		c.Fail(path, "%v is below the least possible, %v: did you mean %dMiB?", b, least, int64(b))
	default:
		c.Fail(path, "must be %v to %v, not %v", least, Bytes(MaxSize), b)
	}
}

// duration checks a time that may be left out.
func (c *checker) duration(d Duration, path string, least, most time.Duration) {
	if d != 0 && (d.Std() < least || d.Std() > most) {
		c.Fail(path, "must be %s to %s, not %s", short(least), short(most), d)
	}
}

// short writes whole hours and minutes without the zeros behind them.
func short(d time.Duration) string {
	s := d.String()
	if trimmed, ok := strings.CutSuffix(s, "m0s"); ok {
		s = trimmed + "m"
	}
	if trimmed, ok := strings.CutSuffix(s, "h0m"); ok {
		s = trimmed + "h"
	}
	return s
}

func (c *checker) notBefore(t time.Time) {
	const format = "2006-01-02T15:04:05Z07:00"
	const firstYear = 2000 // before it a time is a mistake in units, or a zero
	switch {
	case t.IsZero():
	case t.Year() < firstYear:
		c.Fail("not_before", "%s is no sensible start", t.UTC().Format(format))
	case time.Until(t) > maxNotBefore:
		c.Fail("not_before", "%s is more than a year away", t.UTC().Format(format))
	}
}

func (c *checker) retry(r *Retry, path string) {
	if r.Attempts < 0 || r.Attempts > MaxAttempts {
		c.Fail(path+".attempts", "must be 1 to %d, not %d", MaxAttempts, r.Attempts)
	}
	c.duration(r.Backoff, path+".backoff", time.Millisecond, MaxBackoff)
}

func (c *checker) workspace(w *Workspace, disk Bytes) {
	if w == nil {
		return
	}
	if w.Prefix == "" && !w.FromImage {
		c.Missing("workspace.prefix", `: the workspace's name in the store, such as "team/project"`)
	}
	if w.Prefix == "" && w.FromImage && (w.Pull != "" || w.Push != "") {
		c.Fail("workspace", "pull and push need a prefix: the workspace's name in the store")
	}
	if w.FromImage && disk > 0 {
		c.Fail("workspace.from_image", "not with resources.disk: a workspace in memory can't be filled from the image")
	}
	c.match(w.Prefix, "workspace.prefix", prefixRE,
		"one to four parts joined by '/', each of a-z, 0-9, '.', '_' and '-', starting with a letter or digit, at most 64 long")
	enum(c, w.Pull, "workspace.pull", workspacePulls())
	enum(c, w.Push, "workspace.push", workspacePushes())
}

// match checks a value that may be left out against a pattern.
func (c *checker) match(value, path string, re *regexp.Regexp, want string) {
	if value != "" && !re.MatchString(value) {
		c.Fail(path, "not %s: %s", want, document.Quote(value))
	}
}

// enum checks a value of a closed list. Empty means the default.
func enum[T ~string](c *checker, value T, path string, allowed []T) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	words := make([]string, len(allowed))
	for i, w := range allowed {
		words[i] = string(w)
	}
	c.Fail(path, "%s is none of %s%s", document.Quote(string(value)), strings.Join(words, ", "), suggest.DidYouMean(suggest.Nearest(string(value), words)))
}
