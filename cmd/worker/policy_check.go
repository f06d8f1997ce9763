package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/container"
	"slipway/internal/suggest"
	"slipway/job"
)

// check finds what breaks the policy's own rules, and defaults that it would refuse to every job: all of it, while package
// container stops at the first.
func (f *policyFile) check() job.Errors {
	errs := slices.Concat(checkWords("allow", f.Allow), checkWords("always", f.Always), f.checkImages(), f.checkLimits())
	if len(errs) > 0 {
		return errs
	}
	if _, err := f.policy().Apply(container.Spec{Name: container.Product, Resources: f.Defaults.spec()}); err != nil {
		return job.Errors{{Message: err.Error()}} // a rule that is new there and not known here
	}
	return nil
}

func checkWords(key string, words []container.Relaxation) (errs job.Errors) {
	var known []string
	for _, r := range container.Relaxations() {
		known = append(known, string(r))
	}
	for i, w := range words {
		if !slices.Contains(known, string(w)) {
			errs = append(errs, &job.FieldError{
				Path:    fmt.Sprintf("%s[%d]", key, i),
				Message: fmt.Sprintf("%.40q is none of %s%s", w, strings.Join(known, ", "), suggest.DidYouMean(suggest.Nearest(string(w), known))),
			})
		}
	}
	return errs
}

func (f *policyFile) checkImages() (errs job.Errors) {
	for i, prefix := range f.Images {
		message := matchesNothing(prefix)
		var policy *container.PolicyError
		if errors.As(container.Policy{Images: []string{prefix}}.Validate(), &policy) {
			message = policy.Detail
		}
		if message != "" {
			errs = append(errs, &job.FieldError{Path: fmt.Sprintf("images[%d]", i), Message: message})
		}
	}
	return errs
}

// matchesNothing says why no image can be below prefix: a policy that refuses all of them is a mistake that only shows at the first job.
func matchesNothing(prefix string) string {
	probes := []string{prefix, prefix + "/x"} // an image, or a folder of them
	if strings.HasSuffix(prefix, "/") {
		probes = []string{prefix + "x"}
	}
	for _, image := range probes {
		if (container.Policy{Images: []string{prefix}}).AllowsImage(image) == nil {
			return ""
		}
	}
	full, ok := container.NormalizeImage(probes[0])
	lower := strings.ToLower(prefix)
	switch {
	case strings.Contains(prefix, "@"): // a digest may be cut short
		return ""
	case ok:
		return fmt.Sprintf("no image is below %.80q: an engine calls such a one %.80q", prefix, full)
	case lower != prefix:
		return fmt.Sprintf("no image is below %.80q, since their names are in lower case: %.80q", prefix, lower)
	}
	return fmt.Sprintf("no image can be below %.80q", prefix)
}

// limit is one of the resources, alone.
type limit struct {
	name  string
	least job.Bytes // 0: it is no size
	only  func(resources) container.Resources
}

var limits = []limit{
	{"cpus", 0, func(r resources) container.Resources { return container.Resources{CPUs: r.CPUs} }},
	{"memory", container.MinMemory, func(r resources) container.Resources { return container.Resources{Memory: int64(r.Memory)} }},
	{"pids", 0, func(r resources) container.Resources { return container.Resources{Pids: r.Pids} }},
	{"disk", container.MinDisk, func(r resources) container.Resources { return container.Resources{Disk: int64(r.Disk)} }},
	{"tmp", container.MinTmp, func(r resources) container.Resources { return container.Resources{Tmp: int64(r.Tmp)} }},
	{"shm", container.MinShm, func(r resources) container.Resources { return container.Resources{Shm: int64(r.Shm)} }},
	{"files", 0, func(r resources) container.Resources { return container.Resources{Files: r.Files} }},
}

func (f *policyFile) checkLimits() (errs job.Errors) {
	wrong := map[string]bool{}
	fail := func(path, message string) {
		if message != "" {
			errs = append(errs, &job.FieldError{Path: path, Message: message})
			wrong[path] = true
		}
	}
	for _, l := range limits {
		fail("max."+l.name, l.check(l.only(f.Max)))
		fail("defaults."+l.name, l.check(l.only(f.Defaults)))
	}
	for _, l := range limits {
		bound := l.only(f.Max)
		if l.name == "disk" { // left out, it is as memory
			bound.Memory = int64(f.Max.Memory)
		}
		if wrong["max."+l.name] || wrong["defaults."+l.name] || bound.Memory != 0 && wrong["max.memory"] {
			continue
		}
		fail("defaults."+l.name, l.beyond(bound, l.only(f.Defaults)))
	}
	return errs
}

// check says what is wrong with a limit by itself.
func (l limit) check(r container.Resources) string {
	var policy *container.PolicyError
	if !errors.As(container.Policy{Max: r}.Validate(), &policy) {
		return ""
	}
	size := job.Bytes(r.Memory + r.Disk + r.Tmp + r.Shm) // one of them is set
	switch {
	case l.least == 0:
		return policy.Detail
	case size < 1<<16: // as in a job's resources
		return fmt.Sprintf("%v is below the least possible, %v: did you mean %dMiB?", size, l.least, int64(size))
	}
	return fmt.Sprintf("must be %v to %v, not %v", l.least, job.Bytes(job.MaxSize), size)
}

// beyond says that a default is more than the policy allows.
func (l limit) beyond(bound, def container.Resources) string {
	_, err := container.Policy{Max: bound}.Apply(container.Spec{Name: container.Product, Resources: def})
	var denied *container.Denied
	if !errors.As(err, &denied) {
		return ""
	}
	detail := denied.Detail
	var asked, allowed int64
	if _, err := fmt.Sscanf(detail, "%d asked for, %d allowed", &asked, &allowed); err == nil && l.least > 0 {
		detail = fmt.Sprintf("%v asked for, %v allowed", job.Bytes(asked), job.Bytes(allowed))
	}
	return "beyond " + denied.Key + ": " + detail
}
