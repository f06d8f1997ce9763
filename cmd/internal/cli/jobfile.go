package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slipway/cmd/internal/exit"
	"slipway/job"
	"slipway/job/jobyaml"
)

// ReadJob reads the job in the file called name, or on stdin if name is "-". Its
// errors name the file; an invalid job is a job.Errors inside.
func (s System) ReadJob(name string) (*job.Job, error) {
	data, err := s.readFile(name)
	if err != nil {
		return nil, err
	}
	j, err := jobyaml.Decode(data)
	if err != nil {
		return nil, &invalidJob{File: displayName(name), Err: err}
	}
	return j, nil
}

func displayName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

func (s System) readFile(name string) ([]byte, error) {
	in := s.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, exit.UsageError(err)
		}
		defer f.Close()
		in = f
	}
	// One byte more than the cap: the decoder then says that the file is too large.
	data, err := io.ReadAll(io.LimitReader(in, job.MaxSpecBytes+1))
	if err != nil {
		return nil, exit.UsageError(fmt.Errorf("read %s: %w", displayName(name), err))
	}
	return data, nil
}

// invalidJob is a job file that was refused.
type invalidJob struct {
	File string
	Err  error // job.Errors, mostly
}

// Error writes one mistake a line, each with the file's name.
func (e *invalidJob) Error() string {
	var many job.Errors
	if !errors.As(e.Err, &many) {
		return e.File + ": " + e.Err.Error()
	}
	lines := []string{fmt.Sprintf("%s is no valid job:", e.File)}
	for _, one := range many {
		lines = append(lines, "  "+one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes e a usage error.
func (e *invalidJob) Unwrap() []error {
	return []error{&exit.Error{Code: exit.Usage, Err: errors.New("invalid job")}, e.Err}
}

// Overrides are the flags that change a job after it was read.
type Overrides struct {
	queue, name, priority, notBefore, id string
	labels, env                          []string
}

// AddOverrides adds the flags to flags.
func AddOverrides(flags *pflag.FlagSet) *Overrides {
	o := &Overrides{}
	flags.StringVar(&o.queue, "queue", "", "put the job into this queue")
	flags.StringVar(&o.name, "name", "", "name the job")
	flags.StringVar(&o.priority, "priority", "", "high, normal or low")
	flags.StringArrayVar(&o.labels, "label", nil, "set a label, `key=value`; may be repeated")
	flags.StringArrayVar(&o.env, "env", nil, "set a variable for all steps, `NAME=value`; may be repeated. Never a secret: everybody who can read the queue can read it")
	flags.StringVar(&o.notBefore, "not-before", "", "start not before this `time`: RFC 3339, or a duration from now such as 10m")
	flags.StringVar(&o.id, "id", "", "the job's id, a ULID; submitting the same id again does no harm")
	return o
}

// Apply changes j, makes sure that it has an id, and validates it.
func (o *Overrides) Apply(j *job.Job, now time.Time) error {
	if o.queue != "" {
		j.Queue = o.queue
	}
	if o.name != "" {
		j.Name = o.name
	}
	if o.priority != "" {
		j.Priority = job.Priority(o.priority)
	}
	if err := o.applyMaps(j); err != nil {
		return err
	}
	if err := o.applyNotBefore(j, now); err != nil {
		return err
	}
	if o.id != "" {
		id, err := job.ParseID(o.id)
		if err != nil {
			return exit.Usagef("--id: %w", err)
		}
		j.ID = id
	}
	if j.ID == "" {
		j.ID = job.NewID()
	}
	if err := j.Validate(); err != nil {
		return &invalidJob{File: "the job with the flags' changes", Err: err}
	}
	return nil
}

func (o *Overrides) applyMaps(j *job.Job) error {
	for _, m := range []struct {
		flag string
		in   []string
		out  *map[string]string
	}{{"--label", o.labels, &j.Labels}, {"--env", o.env, &j.Env}} {
		set, err := Pairs(m.flag, m.in)
		if err != nil {
			return err
		}
		if *m.out == nil {
			*m.out = set
			continue
		}
		maps.Copy(*m.out, set)
	}
	return nil
}

// Pairs reads the values of a flag that takes key=value. Nothing given is a nil map.
func Pairs(flag string, words []string) (map[string]string, error) {
	var pairs map[string]string
	for _, kv := range words {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, exit.Usagef("%s %q: want key=value", flag, kv)
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[k] = v
	}
	return pairs, nil
}

func (o *Overrides) applyNotBefore(j *job.Job, now time.Time) error {
	if o.notBefore == "" {
		return nil
	}
	if d, err := time.ParseDuration(o.notBefore); err == nil {
		if d < 0 {
			return exit.Usagef("--not-before %q: lies in the past: want a duration from now on, such as 10m, or leave it out", o.notBefore)
		}
		j.NotBefore = now.Add(d).UTC()
		return nil
	}
	at, err := time.Parse(time.RFC3339, o.notBefore)
	if err != nil {
		return exit.Usagef("--not-before %q: neither a time such as 2027-01-31T09:00:00Z nor a duration such as 10m", o.notBefore)
	}
	j.NotBefore = at.UTC()
	return nil
}

// Past reads the value of a flag that takes a time gone by: RFC 3339, or a duration before now, also in days (7d).
func Past(flag, word string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, word)
	if days, cut := strings.CutSuffix(word, "d"); err != nil && cut {
		var n int
		if n, err = strconv.Atoi(days); err == nil {
			at = now.AddDate(0, 0, -n)
		}
	}
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(word); err == nil {
			at = now.Add(-d)
		}
	}
	switch {
	case err != nil:
		return time.Time{}, exit.Usagef("%s %q: neither a time such as 2027-01-31T09:00:00Z nor a duration such as 24h or 7d", flag, word)
	case at.After(now):
		return time.Time{}, exit.Usagef("%s %q: lies in the future", flag, word)
	}
	return at, nil
}

// ParseIDs reads job ids from the command line.
func ParseIDs(args []string) ([]job.ID, error) {
	ids := make([]job.ID, 0, len(args))
	for _, a := range args {
		id, err := job.ParseID(a)
		if err != nil {
			return nil, exit.UsageError(err)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
