package settings

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/internal/document"
	"slipway/internal/suggest"
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

// Resolve gives every setting that has no flag on the command line its value from the environment or, failing that,
// from the config file, and applies its rule. The error lists every mistake with its source (flag, variable,
// file:line:column), one a line; mistakes that may only follow from another one are left out. fileName is for messages;
// file may be nil.
func (s *Set) Resolve(environ []string, fileName string, file io.Reader) error {
	f := &configFile{set: s}
	if file != nil {
		data, err := kind.ReadAll(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", fileName, err)
		}
		f = s.parse(data)
	}
	errs := f.sourced(fileName)
	wrong := map[string]bool{}
	for _, st := range s.list {
		if err := st.resolve(environ, fileName, f.values); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.sourceText, err))
			wrong[st.Key] = true
		}
	}
	for _, r := range s.rules {
		if slices.ContainsFunc(r.keys, func(key string) bool { return wrong[key] || f.mayBeAffected(key) }) {
			continue // the rule would judge a value that is not the one that was meant
		}
		if err := r.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.sourcesOf(r.keys), err))
		}
	}
	return errors.Join(errs...)
}

func (s *Setting) resolve(environ []string, fileName string, fromFile map[string]fileValue) error {
	text, found := s.find(environ, fileName, fromFile)
	if found {
		if err := s.flag.Value.Set(text); err != nil {
			return s.invalid(text, err)
		}
	}
	return s.check()
}

// find notes where the value comes from, and returns it if the flag does not hold it yet.
func (s *Setting) find(environ []string, fileName string, fromFile map[string]fileValue) (text string, found bool) {
	if s.flag.Changed {
		s.source, s.sourceText = FromFlag, s.Flag()
		return "", false
	}
	for _, name := range s.envName {
		// An empty variable counts as unset: compose files and CI systems write it so.
		if v, ok := Env(environ, name); ok && v != "" {
			s.source, s.sourceText = FromEnv+" "+name, "variable "+name
			return v, true
		}
	}
	if v, ok := fromFile[s.Key]; ok {
		s.source = fmt.Sprintf("%s %s:%d", FromFile, fileName, v.line)
		s.sourceText = fmt.Sprintf("%s:%d:%d: %s", fileName, v.line, v.column, s.Key)
		return v.text, true
	}
	return "", false
}

// sourcesOf names the sources of keys. A default is none: the defaults alone break no rule.
func (s *Set) sourcesOf(keys []string) string {
	var out []string
	for _, key := range keys {
		if st := s.byKey[key]; st.source != FromDefault {
			out = append(out, st.sourceText)
		}
	}
	return strings.Join(out, ", ")
}

// invalid adds the value to the message of its parser, if it is not there already, and keeps a secret out of it.
func (s *Setting) invalid(text string, err error) error {
	switch {
	case s.Secret:
		return errors.New("not a valid value")
	case text == "" || strings.Contains(err.Error(), text):
		return err
	}
	return fmt.Errorf("%w, not %s", err, document.Quote(text))
}

// UnknownVariable is a variable with our prefix that is no setting.
type UnknownVariable struct {
	Name string
	// Meant is the setting's variable that was probably meant. Empty if no name is near.
	Meant string
}

// String writes a warning of one line.
func (v UnknownVariable) String() string {
	return "variable " + v.Name + " is set, but there is no such setting" + suggest.DidYouMean(v.Meant)
}

// UnknownEnv lists the variables of environ that have our prefix and are no setting, sorted.
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
