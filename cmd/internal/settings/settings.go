package settings

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slipway/internal/size"
)

// EnvPrefix begins the name of every variable.
const EnvPrefix = "SLIPWAY_"

// Sources of a value, as Print shows them.
const (
	FromFlag    = "flag"
	FromEnv     = "env"
	FromFile    = "file"
	FromDefault = "default"
)

// Setting is one value that a program can be given.
type Setting struct {
	// Key names it in the config file, with dots between the levels.
	Key string
	// Secret: has no flag, and its value is never printed.
	Secret bool

	flag       *pflag.Flag
	envName    []string
	source     string
	sourceText string // the source, as messages name it; the key for a default
	check      func() error
}

// Flag is the name on the command line, with its dashes. Empty for a secret.
func (s *Setting) Flag() string {
	if s.Secret {
		return ""
	}
	return "--" + s.flag.Name
}

// Env is the name of the variable.
func (s *Setting) Env() string { return s.envName[0] }

// OtherEnv are the names of variables of other programs that count, too, if Env is not set.
func (s *Setting) OtherEnv() []string { return s.envName[1:] }

// Usage says in one line what it is.
func (s *Setting) Usage() string { return s.flag.Usage }

// DefaultText is the default as a flag's help writes it. Empty: none, or none that is the same everywhere.
func (s *Setting) DefaultText() string { return s.flag.DefValue }

// Value is the value as a text, secrets and all.
func (s *Setting) Value() string { return s.flag.Value.String() }

// Source says where the value came from: FromFlag, FromEnv, FromFile or FromDefault, the latter three with detail.
func (s *Setting) Source() string { return s.source }

// Check adds the rule for the value, which Resolve applies. The error of rule says what is wanted; Resolve adds the source.
func (s *Setting) Check(rule func() error) *Setting {
	s.check = rule
	return s
}

// Default replaces the default.
func (s *Setting) Default(v string) {
	if err := s.flag.Value.Set(v); err != nil {
		panic("settings: default of " + s.Key + ": " + err.Error()) // only ever a constant of ours
	}
	s.flag.DefValue = v
}

// AlsoEnv adds a variable of another program, such as AWS_ACCESS_KEY_ID. Our own wins over it.
func (s *Setting) AlsoEnv(name string) *Setting {
	s.envName = append(s.envName, name)
	return s
}

// Display is the value for people: secrets and passwords in URLs are masked.
func (s *Setting) Display() string {
	v := s.flag.Value.String()
	if s.Secret {
		if v == "" {
			return ""
		}
		return "********"
	}
	return MaskURLs(v)
}

// MaskURLs hides the passwords of a comma-separated list of URLs; other text comes back as it is.
func MaskURLs(list string) string {
	if !strings.Contains(list, "@") {
		return list
	}
	parts := strings.Split(list, ",")
	for i, p := range parts {
		u, err := url.Parse(strings.TrimSpace(p))
		switch {
		case err != nil:
			parts[i] = "********"
		case u.User != nil:
			if _, has := u.User.Password(); !has {
				u.User = url.User("xxxxx") // a token in the place of the user is a secret, too
			}
			parts[i] = u.Redacted()
		}
	}
	return strings.Join(parts, ",")
}

// Set is the list of a program's settings, in the order in which they were added.
type Set struct {
	all    *pflag.FlagSet // every setting, secrets included
	public *pflag.FlagSet // the command's own
	list   []*Setting
	byKey  map[string]*Setting
	rules  []rule
}

// rule is a rule about several settings.
type rule struct {
	keys  []string
	check func() error
}

// New returns an empty Set whose flags go to flags.
func New(flags *pflag.FlagSet) *Set {
	return &Set{all: pflag.NewFlagSet("settings", pflag.ContinueOnError), public: flags, byKey: map[string]*Setting{}}
}

// List returns the settings in the order in which they were added.
func (s *Set) List() []*Setting { return s.list }

// String adds a setting that is a text.
func (s *Set) String(p *string, key, def, usage string) *Setting {
	s.all.StringVar(p, flagName(key), def, usage)
	return s.add(key, false)
}

// Secret adds a text that has no flag and is never printed.
func (s *Set) Secret(p *string, key, usage string) *Setting {
	s.all.StringVar(p, flagName(key), "", usage)
	return s.add(key, true)
}

// Int adds a setting that is a whole number.
func (s *Set) Int(p *int, key string, def int, usage string) *Setting {
	s.all.IntVar(p, flagName(key), def, usage)
	return s.add(key, false)
}

// Int64 adds a setting that is a whole number.
func (s *Set) Int64(p *int64, key string, def int64, usage string) *Setting {
	s.all.Int64Var(p, flagName(key), def, usage)
	return s.add(key, false)
}

// Size adds a number of bytes such as "512MiB".
func (s *Set) Size(p *int64, key string, def int64, usage string) *Setting {
	*p = def
	s.all.Var(sizeValue{p}, flagName(key), usage)
	return s.add(key, false)
}

// Bool adds a setting that is true or false.
func (s *Set) Bool(p *bool, key string, def bool, usage string) *Setting {
	s.all.BoolVar(p, flagName(key), def, usage)
	return s.add(key, false)
}

// Duration adds a setting such as "90s".
func (s *Set) Duration(p *time.Duration, key string, def time.Duration, usage string) *Setting {
	s.all.DurationVar(p, flagName(key), def, usage)
	return s.add(key, false)
}

// Strings adds a list, written with commas.
func (s *Set) Strings(p *[]string, key string, def []string, usage string) *Setting {
	*p = def
	s.all.Var(listValue{p}, flagName(key), usage)
	return s.add(key, false)
}

// Together adds a rule about several settings. Its error names the sources of those of keys that are not at their default.
func (s *Set) Together(check func() error, keys ...string) {
	s.rules = append(s.rules, rule{keys, check})
}

// Lookup returns the setting with key, or nil.
func (s *Set) Lookup(key string) *Setting { return s.byKey[key] }

func (s *Set) add(key string, secret bool) *Setting {
	st := &Setting{
		Key: key, Secret: secret, source: FromDefault, sourceText: key, check: func() error { return nil },
		flag: s.all.Lookup(flagName(key)), envName: []string{EnvPrefix + strings.ToUpper(strings.ReplaceAll(flagName(key), "-", "_"))},
	}
	if !secret {
		s.public.AddFlag(st.flag)
	}
	s.list = append(s.list, st)
	s.byKey[key] = st
	return st
}

func flagName(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// sizeValue is a number of bytes, written as people do.
type sizeValue struct{ p *int64 }

func (v sizeValue) String() string {
	if v.p == nil {
		return ""
	}
	return size.Format(*v.p)
}

func (v sizeValue) Set(s string) (err error) {
	*v.p, err = size.Parse(s)
	return err
}

func (v sizeValue) Type() string { return "size" }

// listValue replaces the list at each Set, so that a flag doesn't add to the file's.
type listValue struct{ p *[]string }

func (v listValue) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(*v.p, ",")
}

func (v listValue) Set(s string) error {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return fmt.Errorf("an empty list")
	}
	*v.p = out
	return nil
}
func (v listValue) Type() string { return "list" }
