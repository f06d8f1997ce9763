package settings

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/internal/suggest"
	"slipway/job"
)

// Env looks a variable up in a list of NAME=value.
func Env(environ []string, name string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// Resolve gives every setting that has no flag on the command line its value from
// the environment or, failing that, from the config file, and checks it. The error has a line for each
// mistake, with what gave it, but for those that may only be there because of another one. fileName is for messages; file may be nil.
func (s *Set) Resolve(environ []string, fileName string, file io.Reader) error {
	var w walk
	if file != nil {
		data, err := io.ReadAll(io.LimitReader(file, job.MaxSpecBytes+1)) // one more: the parser says that it is too much
		if err != nil {
			return fmt.Errorf("read %s: %w", fileName, err)
		}
		w = s.parse(data)
	}
	var errs []error
	for _, mistake := range w.mistakes {
		errs = append(errs, errors.New(mistake.In(fileName)))
	}
	wrong := map[string]bool{}
	for _, st := range s.list {
		if err := st.resolve(environ, fileName, w.leaves); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.given, err))
			wrong[st.Key] = true
		}
	}
	for _, r := range s.rules {
		if slices.ContainsFunc(r.keys, func(key string) bool { return wrong[key] || w.clouds(key) }) {
			continue // what they are together means nothing yet
		}
		if err := r.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.givers(r.keys), err))
		}
	}
	return errors.Join(errs...)
}

func (s *Setting) resolve(environ []string, fileName string, fromFile map[string]fileValue) error {
	text, given := s.find(environ, fileName, fromFile)
	if given {
		if err := s.flag.Value.Set(text); err != nil {
			return s.invalid(err)
		}
	}
	return s.check()
}

// find notes where the value comes from, and returns it if it is not in place yet.
func (s *Setting) find(environ []string, fileName string, fromFile map[string]fileValue) (text string, given bool) {
	if s.flag.Changed {
		s.source, s.given = FromFlag, s.Flag()
		return "", false
	}
	for _, name := range s.envName {
		// An empty variable counts as unset: compose files and CI systems write it so.
		if v, ok := Env(environ, name); ok && v != "" {
			s.source, s.given = FromEnv+" "+name, "variable "+name
			return v, true
		}
	}
	if v, ok := fromFile[s.Key]; ok {
		s.source = fmt.Sprintf("%s %s:%d", FromFile, fileName, v.line)
		s.given = fmt.Sprintf("%s:%d:%d: %s", fileName, v.line, v.column, s.Key)
		return v.text, true
	}
	return "", false
}

// givers names those of keys that somebody gave: with the defaults alone no rule is broken.
func (s *Set) givers(keys []string) string {
	var out []string
	for _, key := range keys {
		if st := s.byKey[key]; st.source != FromDefault {
			out = append(out, st.given)
		}
	}
	return strings.Join(out, ", ")
}

// invalid keeps a secret out of the message of its own parser.
func (s *Setting) invalid(err error) error {
	if s.Secret {
		return errors.New("not a valid value")
	}
	return err
}

// UnknownVariable is a variable that looks like ours and that nobody reads.
type UnknownVariable struct {
	Name string
	// Meant is the one of ours that is nearest. Empty if none is near.
	Meant string
}

// String says so, in one line.
func (v UnknownVariable) String() string {
	return "variable " + v.Name + " is set, but there is no such setting" + suggest.DidYouMean(v.Meant)
}

// UnknownEnv lists them.
func (s *Set) UnknownEnv(environ []string) []UnknownVariable {
	var ours, unknown []string
	for _, st := range s.list {
		ours = append(ours, strings.ToLower(strings.TrimPrefix(st.Env(), EnvPrefix)))
	}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		known := slices.ContainsFunc(s.list, func(st *Setting) bool { return slices.Contains(st.envName, name) })
		if strings.HasPrefix(name, EnvPrefix) && !known {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	var out []UnknownVariable
	for _, name := range slices.Compact(unknown) {
		v := UnknownVariable{Name: name}
		if near := suggest.Nearest(strings.TrimPrefix(name, EnvPrefix), ours); near != "" { // without the prefix, which would make all names near
			v.Meant = EnvPrefix + strings.ToUpper(near)
		}
		out = append(out, v)
	}
	return out
}
