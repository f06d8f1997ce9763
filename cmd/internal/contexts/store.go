package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/settings"
	"slipway/internal/atomicfile"
	"slipway/internal/hint"
	"slipway/internal/suggest"
	"slipway/job/natsqueue"
)

// Variable names the context to use in the place of --context.
const Variable = settings.EnvPrefix + "CONTEXT"

// Queue is the key of the queue for jobs that name none.
const Queue = "queue"

// ErrUnknown says that there is no context of a name.
var ErrUnknown = errors.New("no such context")

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Store is the folder of the contexts of one user.
type Store struct{ config string }

// Open returns the store of the user whose environment it is. It does no I/O.
func Open(environ []string) (Store, error) {
	config, _ := settings.Env(environ, "XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		home, _ := settings.Env(environ, "HOME")
		if home == "" {
			return Store{}, errors.New("there is no place for contexts: neither HOME nor XDG_CONFIG_HOME is set")
		}
		config = filepath.Join(home, ".config")
	}
	return Store{config: config}, nil
}

// NewSet is a set of all settings that a context may have. flags gets those that have one.
func NewSet(flags *pflag.FlagSet) *settings.Set {
	set := settings.New(flags)
	new(cli.NATS).Register(set)
	Register(set)
	return set
}

// Register adds those settings that a context has beside the queue's own.
func Register(set *settings.Set) {
	queue := new(string)
	set.String(queue, Queue, "", "queue for jobs that name none").
		Check(cli.UnlessEmpty(queue, func(q string) error { return natsqueue.CheckQueues([]string{q}) }))
	new(cli.S3).Register(set, "the store is not read")
}

func (s Store) current() string { return filepath.Join(s.config, "slipway", "context.txt") }

// Path is the file of a context.
func (s Store) Path(name string) string {
	return filepath.Join(s.config, "slipway", "context", name+".yaml")
}

// Names lists the contexts, sorted.
func (s Store) Names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(s.Path("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list contexts: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && nameRE.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Current is the name of the context in use, empty if there is none.
func (s Store) Current() (string, error) {
	data, err := os.ReadFile(s.current())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find the context in use: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Use makes a context the one in use. An empty name ends the use of any.
func (s Store) Use(name string) error {
	if name == "" {
		if err := os.Remove(s.current()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("use no context: %w", err)
		}
		return nil
	}
	if _, err := s.Load(name); err != nil {
		return err
	}
	return write(s.current(), []byte(name+"\n"))
}

// Load reads a context. The settings that its file has have a source that begins with settings.FromFile. Mistakes are
// named with file and line.
func (s Store) Load(name string) (*settings.Set, error) {
	if !nameRE.MatchString(name) {
		return nil, s.unknown(name)
	}
	data, err := os.ReadFile(s.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.unknown(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read context %s: %w", name, err)
	}
	return s.parse(name, data)
}

func (s Store) parse(name string, data []byte) (*settings.Set, error) {
	set := NewSet(pflag.NewFlagSet("context", pflag.ContinueOnError))
	if err := set.Resolve(nil, s.Path(name), bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("context %s: %w", name, err)
	}
	return set, nil
}

func (s Store) unknown(name string) error {
	names, err := s.Names()
	if err != nil || len(names) == 0 {
		return hint.With(fmt.Errorf("%w: %.70q", ErrUnknown, name), "submit context add makes one")
	}
	return hint.With(fmt.Errorf("%w: %.70q%s", ErrUnknown, name, suggest.DidYouMean(suggest.Nearest(name, names))), "There are %s", strings.Join(names, ", "))
}

// Environ is what a context says, as variables. They are to stand before those of the program, which win.
func Environ(set *settings.Set) []string {
	var environ []string
	for _, st := range set.List() {
		if strings.HasPrefix(st.Source(), settings.FromFile) {
			environ = append(environ, st.Env()+"="+st.Value())
		}
	}
	return environ
}

// Save writes a context with the values, by key, if they are such that Load takes them. It replaces one of that name only if
// it may.
func (s Store) Save(name string, values map[string]string, replace bool) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("name of the context: want letters, digits, '.', '_' and '-', at most 64 and a letter or a digit first, not %.70q", name)
	}
	if _, err := os.Stat(s.Path(name)); err == nil && !replace {
		return hint.With(fmt.Errorf("context %s is there already", name), "Add --replace to replace it, or edit %s", s.Path(name))
	}
	data := encode(values)
	if _, err := s.parse(name, data); err != nil { // such as a file of the nats command's that is not there
		return err
	}
	return write(s.Path(name), data)
}

// Remove deletes a context. If it was in use, none is from then on.
func (s Store) Remove(name string) error {
	if !nameRE.MatchString(name) {
		return s.unknown(name)
	}
	err := os.Remove(s.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return s.unknown(name)
	}
	if err != nil {
		return fmt.Errorf("remove context %s: %w", name, err)
	}
	if current, err := s.Current(); err != nil || current != name {
		return err
	}
	return s.Use("")
}

// write replaces a file as a whole, for its owner alone.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
