package container

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/internal/size"
)

// Bounds of a Spec that no policy can move.
const (
	minCPUs   = 0.01
	minMemory = 16 << 20 // bytes; less does not hold the supervisor
	minPids   = 32       // the supervisor's own threads are among them
	minDisk   = 1 << 20
	minTmp    = 1 << 20
	minShm    = 64 << 10
	minFiles  = 64
	maxID     = 1<<31 - 1 // of a user or a group
	maxLabels = 64
	maxEnv    = 512 << 10 // bytes of all names and values; steps' own come on top
)

var (
	nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	envRE  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reserved lists the folders that can't hold a workspace: they are the
// kernel's, the box's own, or hold what every program needs.
var reserved = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run",
	"/sbin", "/sys", "/tmp", "/usr", "/var/run", "/.slipway",
}

// Validate checks every rule that needs no engine, before the defaults are filled in. Its error matches ErrSpec and names the field.
func (s Spec) Validate() error {
	if !nameRE.MatchString(s.Name) {
		return specError("name", "%q does not match %s", s.Name, nameRE)
	}
	if err := checkWorkdir(s.Workdir); s.Workdir != "" && err != nil {
		return err
	}
	if s.User.UID < 0 || s.User.UID > maxID || s.User.GID < 0 || s.User.GID > maxID {
		return specError("user", "%d:%d is outside 0 to %d", s.User.UID, s.User.GID, maxID)
	}
	if n := s.Network; n != "" && n != NetworkNone && n != NetworkOpen {
		return specError("network", "%q is neither %q nor %q", n, NetworkNone, NetworkOpen)
	}
	if s.DeadMan < 0 || s.Lifetime < 0 {
		return specError("dead_man, lifetime", "must not be negative")
	}
	if s.FromImage && s.Resources.Disk > 0 {
		return specError("from_image", "not with resources.disk: a workspace in memory can't be filled from the image")
	}
	for _, r := range s.Relaxed {
		if !slices.Contains(Relaxations(), r) {
			return specError("relaxed", "unknown key %q", r)
		}
	}
	if err := checkMaps(s.Env, s.Labels); err != nil {
		return err
	}
	return s.Resources.validate()
}

// WithDefaults returns s validated and with every zero field filled. It is what
// a provider starts from, so that a spec that saw no Policy is closed too: what s does beyond the
// defaults must stand in Relaxed, else it is a *Denied.
func (s Spec) WithDefaults() (Spec, error) {
	if err := s.Validate(); err != nil {
		return Spec{}, err
	}
	for r, field := range asked(s) {
		if !s.HasRelaxation(r) {
			return Spec{}, &Denied{Field: field, Key: string(r)}
		}
	}
	s.fill()
	return s, nil
}

// asked lists what spec asks for, in Relaxed or by another field, with that field's name.
func asked(spec Spec) map[Relaxation]string {
	ask := map[Relaxation]string{}
	for _, r := range spec.Relaxed {
		ask[r] = "relaxed"
	}
	if spec.Network == NetworkOpen {
		ask[RelaxNetworkOpen] = "network"
	}
	if spec.User != (User{}) && isRoot(spec.User) {
		ask[RelaxRootSteps] = "user"
	}
	return ask
}

// isRoot counts gid 0 too, since the image's files of group root would be open to it.
func isRoot(u User) bool { return u.UID == 0 || u.GID == 0 }

func (s *Spec) fill() {
	if s.User == (User{}) && !s.HasRelaxation(RelaxRootSteps) {
		s.User = DefaultUser
	}
	s.Workdir = cmp.Or(s.Workdir, DefaultWorkdir)
	s.DeadMan = cmp.Or(s.DeadMan, DefaultDeadMan)
	s.Lifetime = cmp.Or(s.Lifetime, DefaultLifetime)
	s.Network = cmp.Or(s.Network, NetworkNone)
	if s.HasRelaxation(RelaxNetworkOpen) {
		s.Network = NetworkOpen
	}
	s.Resources = s.Resources.Or(DefaultResources())
}

// checkWorkdir tells whether dir can hold a workspace: absolute, clean, and not
// in a folder that belongs to the kernel, the box or the system. Its error matches ErrSpec.
func checkWorkdir(dir string) error {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsAny(dir, "\x00:,\n") || len(dir) > 1024 {
		return specError("workdir", "%q is not a clean absolute path", dir)
	}
	if dir == "/" {
		return specError("workdir", "must not be the root folder")
	}
	for _, r := range reserved {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return specError("workdir", "%q lies in %s, which is the box's own", dir, r)
		}
	}
	if dir == "/var" || dir == "/home" || dir == "/root" || dir == "/opt" {
		return specError("workdir", "%q would hide the image's own; use a folder below it", dir)
	}
	return nil
}

func checkMaps(env, labels map[string]string) error {
	size := 0
	for k, v := range env {
		if !envRE.MatchString(k) {
			return specError("env", "%q is no variable name", k)
		}
		if strings.ContainsRune(v, 0) {
			return specError("env", "the value of %s holds a zero byte", k)
		}
		size += len(k) + len(v) + 2
	}
	if size > maxEnv {
		return specError("env", "%d bytes in all, more than %d", size, maxEnv)
	}
	if len(labels) > maxLabels {
		return specError("labels", "%d, more than %d", len(labels), maxLabels)
	}
	for k, v := range labels {
		if k == "" || len(k) > 128 || len(v) > 1024 || strings.ContainsAny(k+v, "\x00\n") || strings.Contains(k, "=") {
			return specError("labels", "%q: bad key or value", k)
		}
	}
	return nil
}

// validate returns the first mistake, or nil.
func (r Resources) validate() error {
	if all := r.mistakes(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// mistakes lists the limits that are out of bounds. A zero field is a default to come.
func (r Resources) mistakes() (wrong []*SpecError) {
	if math.IsNaN(r.CPUs) || r.CPUs < 0 || r.CPUs > 0 && r.CPUs < minCPUs || r.CPUs > 1<<20 {
		wrong = append(wrong, specError("resources.cpus", "%v is below %v, or no sensible number", r.CPUs, minCPUs))
	}
	for _, f := range r.fields() {
		if v := *f.value; v < 0 || v > 0 && v < f.min || v > maxSize {
			wrong = append(wrong, specError("resources."+f.name, "%s", f.outOfBounds(v)))
		}
	}
	return wrong
}

// maxSize is beyond every machine, and far from the end of an int64.
const maxSize = 1 << 50

func (f field) outOfBounds(v int64) string {
	switch {
	case !f.isSize:
		return fmt.Sprintf("%d is below %d, or no sensible number", v, f.min)
	case v > 0 && v < 1<<16: // a number without its unit
		return fmt.Sprintf("%s is below the least possible, %s: did you mean %dMiB?", f.text(v), f.text(f.min), v)
	}
	return fmt.Sprintf("must be %s to %s, not %s", f.text(f.min), f.text(maxSize), f.text(v))
}

// field is one whole-number limit, by the name it has in a job.
type field struct {
	name   string
	value  *int64
	min    int64
	isSize bool // in bytes
}

// text writes a value as a job file has it.
func (f field) text(v int64) string {
	if f.isSize {
		return size.Format(v)
	}
	return strconv.FormatInt(v, 10)
}

func (r *Resources) fields() []field {
	return []field{
		{"memory", &r.Memory, minMemory, true},
		{"pids", &r.Pids, minPids, false},
		{"disk", &r.Disk, minDisk, true},
		{"tmp", &r.Tmp, minTmp, true},
		{"shm", &r.Shm, minShm, true},
		{"files", &r.Files, minFiles, false},
	}
}

// HasRelaxation tells whether the box was granted r.
func (s Spec) HasRelaxation(r Relaxation) bool { return slices.Contains(s.Relaxed, r) }

// CheckCommand tells whether a box of this spec may run cmd. The error is a
// *Denied for a user that the policy did not grant, or matches ErrSpec.
func (s Spec) CheckCommand(cmd Command) error {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return specError("command", "is empty")
	}
	for _, a := range cmd.Args {
		if strings.ContainsRune(a, 0) {
			return specError("command", "%q holds a zero byte", a)
		}
	}
	if cmd.Timeout < 0 || cmd.Grace < 0 {
		return specError("timeout, grace", "must not be negative")
	}
	if u := cmd.User; u != nil {
		if u.UID < 0 || u.UID > maxID || u.GID < 0 || u.GID > maxID {
			return specError("user", "%d:%d is outside 0 to %d", u.UID, u.GID, maxID)
		}
		if isRoot(*u) && !s.HasRelaxation(RelaxRootSteps) {
			return &Denied{Field: "user", Key: string(RelaxRootSteps)}
		}
	}
	return checkMaps(cmd.Env, nil)
}

func specError(field, format string, args ...any) *SpecError {
	return &SpecError{Field: field, Detail: fmt.Sprintf(format, args...)}
}
