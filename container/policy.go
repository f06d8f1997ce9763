package container

import (
	"fmt"
	"slices"
	"strings"

	"slipway/internal/suggest"
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
// relaxation, and at most four times the default of each resource.
type Policy struct {
	// Allow lists what a job may ask for.
	Allow []Relaxation
	// Always lists what every box gets, asked for or not. It need not be repeated in Allow.
	Always []Relaxation
	// Max bounds what a job may ask for. A zero field means: four times the default, and for Disk: Memory's bound.
	Max Resources
	// Images lists the allowed images as prefixes that end at a boundary ("docker.io/library/", "ghcr.io/acme/"). Empty allows all.
	Images []string
}

// PolicyError is one mistake in a policy.
type PolicyError struct {
	// Key is where it stands, such as allow[1] or max.memory: the key of a policy file.
	Key string
	// Detail says what is wrong, and what would be right.
	Detail string
}

// Error names the key.
func (e *PolicyError) Error() string { return "policy: " + e.Key + ": " + e.Detail }

// PolicyErrors are all the mistakes in a policy, at least one. errors.As reaches each *PolicyError.
type PolicyErrors []*PolicyError

// Error has a line for each mistake.
func (es PolicyErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single mistakes.
func (es PolicyErrors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

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

// Validate checks the policy itself, and finds all its mistakes: its error is PolicyErrors. It is the only place of
// these rules; readers of policy files add where in the file a key stands.
func (p Policy) Validate() error {
	errs := slices.Concat(checkRelaxations("allow", p.Allow), checkRelaxations("always", p.Always), p.checkMax(), p.checkImages())
	if len(errs) > 0 {
		return errs
	}
	return nil
}

func checkRelaxations(key string, list []Relaxation) (errs PolicyErrors) {
	known := make([]string, len(Relaxations()))
	for i, r := range Relaxations() {
		known[i] = string(r)
	}
	for i, r := range list {
		if word := string(r); !slices.Contains(known, word) {
			errs = append(errs, &PolicyError{
				Key:    fmt.Sprintf("%s[%d]", key, i),
				Detail: fmt.Sprintf("%.40q is none of %s%s", word, strings.Join(known, ", "), suggest.DidYouMean(suggest.Nearest(word, known))),
			})
		}
	}
	return errs
}

func (p Policy) checkMax() (errs PolicyErrors) {
	for _, wrong := range p.Max.mistakes() {
		errs = append(errs, &PolicyError{Key: "max." + wrong.resource(), Detail: wrong.Detail})
	}
	return errs
}

func (p Policy) checkImages() (errs PolicyErrors) {
	for i, prefix := range p.Images {
		if detail := checkPrefix(prefix); detail != "" {
			errs = append(errs, &PolicyError{Key: fmt.Sprintf("images[%d]", i), Detail: detail})
		}
	}
	return errs
}

// ValidateDefaults checks the resources that a worker gives to a job that asks for none: a default beyond a bound of
// the policy would refuse every such job. Its error is PolicyErrors, whose keys begin with "defaults.". A bound that
// Validate refuses is not compared with.
func (p Policy) ValidateDefaults(def Resources) error {
	var errs PolicyErrors
	wrong := map[string]bool{}
	for _, bound := range p.Max.mistakes() {
		wrong[bound.resource()] = true
	}
	wrong["disk"] = wrong["disk"] || wrong["memory"] // a bound of disk that is left out is that of memory
	for _, own := range def.mistakes() {
		errs = append(errs, &PolicyError{Key: "defaults." + own.resource(), Detail: own.Detail})
		wrong[own.resource()] = true
	}
	_, beyond := p.limit(def)
	for _, d := range beyond {
		if name := strings.TrimPrefix(d.Key, "max."); !wrong[name] {
			errs = append(errs, &PolicyError{Key: "defaults." + name, Detail: "beyond " + d.Key + ": " + d.Detail})
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// resource is the name of the limit that is wrong.
func (e *SpecError) resource() string { return strings.TrimPrefix(e.Field, "resources.") }

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
