package container

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Relaxation names one closed default that a box may do without. The names are
// the keys of the worker's policy file, and stand in results.
type Relaxation string

// The relaxations.
const (
	// RelaxNetworkOpen: the engine's default network instead of none.
	RelaxNetworkOpen Relaxation = "network_open"
	// RelaxRootSteps: steps as uid 0 with CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID, FSETID. Needs a writable root to be of use.
	RelaxRootSteps Relaxation = "root_steps"
	// RelaxRootfsWritable: the image's own files can be changed in the box.
	RelaxRootfsWritable Relaxation = "rootfs_writable"
	// RelaxSeccompDefault: the engine's seccomp profile instead of slipway's stricter one.
	RelaxSeccompDefault Relaxation = "seccomp_default"
)

// Relaxations lists every Relaxation.
func Relaxations() []Relaxation {
	return []Relaxation{RelaxNetworkOpen, RelaxRootSteps, RelaxRootfsWritable, RelaxSeccompDefault}
}

// Policy is what the owner of a worker allows. The zero value is closed: no
// relaxation, and of each resource at most four times the default.
type Policy struct {
	// Allow lists what a job may ask for.
	Allow []Relaxation `json:"allow,omitempty" yaml:"allow,omitempty"`
	// Always lists what every box gets, asked for or not. It need not be repeated in Allow.
	Always []Relaxation `json:"always,omitempty" yaml:"always,omitempty"`
	// Max bounds what a job may ask for. A zero field means: four times the default, and for Disk: Memory's bound.
	Max Resources `json:"max,omitzero" yaml:"max,omitempty"`
	// Images lists the allowed images as prefixes that end at a boundary ("docker.io/library/", "ghcr.io/acme/"). Empty allows all.
	Images []string `json:"images,omitempty" yaml:"images,omitempty"`
}

// PolicyError is a policy that makes no sense itself.
type PolicyError struct {
	// Key is where, such as allow[1] or max.memory.
	Key string
	// Word is what is written there, if it should be one of a closed list.
	Word string
	// Detail says what is wrong.
	Detail string
}

// Error names the key.
func (e *PolicyError) Error() string { return "policy: " + e.Key + ": " + e.Detail }

// Apply returns spec with its defaults filled in and Relaxed set to what this
// policy grants, or an error that matches ErrSpec, or the Denials that say all that was
// refused. It changes nothing of spec, and applying it to its own result changes nothing.
func (p Policy) Apply(spec Spec) (Spec, error) {
	if err := p.Validate(); err != nil {
		return Spec{}, err
	}
	if err := spec.Validate(); err != nil {
		return Spec{}, err
	}
	granted, refused := p.grant(spec)
	res, beyond := p.limit(spec.Resources)
	if refused = append(refused, beyond...); len(refused) > 0 {
		return Spec{}, refused
	}
	spec.Relaxed, spec.Resources = granted, res
	return spec.WithDefaults()
}

// Validate checks the policy itself. Its error is a *PolicyError, which names the key.
func (p Policy) Validate() error {
	for _, list := range []struct {
		key  string
		keys []Relaxation
	}{{"allow", p.Allow}, {"always", p.Always}} {
		for i, r := range list.keys {
			if !slices.Contains(Relaxations(), r) {
				return &PolicyError{
					Key: fmt.Sprintf("%s[%d]", list.key, i), Word: string(r), Detail: fmt.Sprintf("%q is none of %v", r, Relaxations()),
				}
			}
		}
	}
	var wrong *SpecError
	if errors.As(p.Max.validate(), &wrong) {
		return &PolicyError{Key: "max." + strings.TrimPrefix(wrong.Field, "resources."), Detail: wrong.Detail}
	}
	for i, prefix := range p.Images {
		if domain, _, ok := strings.Cut(prefix, "/"); !ok || !isDomain(domain) || strings.ContainsAny(prefix, " \t\n*") {
			return &PolicyError{
				Key: fmt.Sprintf("images[%d]", i), Detail: fmt.Sprintf("%q must begin with a registry and a slash, such as \"docker.io/library/\"", prefix),
			}
		}
	}
	return nil
}

// grant returns what a box of spec gets beyond the closed defaults, sorted, and what it does not get.
func (p Policy) grant(spec Spec) (granted []Relaxation, refused Denials) {
	ask := asked(spec)
	for _, r := range Relaxations() {
		field, wanted := ask[r]
		always := slices.Contains(p.Always, r)
		if wanted && !always && !slices.Contains(p.Allow, r) {
			refused = append(refused, &Denied{Field: field, Key: string(r)})
		}
		if wanted || always {
			granted = append(granted, r)
		}
	}
	slices.Sort(granted)
	return granted, refused
}

// limit fills the zero fields of r, and lists what is beyond the bounds. A
// default that is beyond a bound is cut to it, since nobody asked for it.
func (p Policy) limit(r Resources) (limited Resources, beyond Denials) {
	asked, bound, def := r, p.bounds(), DefaultResources()
	if r.CPUs > bound.CPUs {
		beyond = append(beyond, &Denied{
			Field: "resources.cpus", Key: "max.cpus",
			Detail: fmt.Sprintf("%v asked for, %v allowed", r.CPUs, bound.CPUs),
		})
	}
	if r.CPUs == 0 {
		r.CPUs = min(def.CPUs, bound.CPUs)
	}
	bounds, defaults := bound.fields(), def.fields()
	for i, f := range r.fields() {
		if *f.value > *bounds[i].value {
			beyond = append(beyond, &Denied{
				Field: "resources." + f.name, Key: "max." + f.name,
				Detail: fmt.Sprintf("%s asked for, %s allowed", f.text(*f.value), f.text(*bounds[i].value)),
			})
		}
		if *f.value == 0 {
			*f.value = min(*defaults[i].value, *bounds[i].value)
		}
	}
	return r.cut(asked), beyond
}

// bounds returns Max with its zero fields filled.
func (p Policy) bounds() Resources {
	const factor = 4
	b, def := p.Max, DefaultResources()
	if b.CPUs == 0 {
		b.CPUs = factor * def.CPUs
	}
	defaults := def.fields()
	for i, f := range b.fields() {
		if *f.value == 0 {
			*f.value = factor * *defaults[i].value
		}
	}
	if p.Max.Disk == 0 {
		b.Disk = b.Memory
	}
	return b
}
