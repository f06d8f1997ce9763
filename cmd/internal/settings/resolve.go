package settings

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
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
// the environment or, failing that, from the config file. fileName is for messages; file may be nil.
func (s *Set) Resolve(environ []string, fileName string, file io.Reader) error {
	fromFile := map[string]fileValue{}
	if file != nil {
		data, err := io.ReadAll(io.LimitReader(file, 1<<20))
		if err != nil {
			return fmt.Errorf("read %s: %w", fileName, err)
		}
		if fromFile, err = s.parse(fileName, data); err != nil {
			return err
		}
	}
	for _, st := range s.list {
		if err := s.resolve(st, environ, fileName, fromFile); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) resolve(st *Setting, environ []string, fileName string, fromFile map[string]fileValue) error {
	fv, inFile := fromFile[st.Key]
	if st.flag.Changed {
		st.source = FromFlag
		return nil
	}
	for _, name := range st.envName {
		// An empty variable counts as unset: compose files and CI systems write it so.
		v, ok := Env(environ, name)
		if !ok || v == "" {
			continue
		}
		if err := st.flag.Value.Set(v); err != nil {
			return fmt.Errorf("variable %s: %w", name, st.invalid(err))
		}
		st.source = FromEnv + " " + name
		return nil
	}
	if inFile {
		if err := st.flag.Value.Set(fv.text); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", fileName, fv.line, st.Key, st.invalid(err))
		}
		st.source = fmt.Sprintf("%s %s:%d", FromFile, fileName, fv.line)
	}
	return nil
}

// invalid keeps a secret out of the message of its own parser.
func (s *Setting) invalid(err error) error {
	if s.Secret {
		return errors.New("not a valid value")
	}
	return err
}

// UnknownEnv lists the variables that look like ours and that nobody reads.
func (s *Set) UnknownEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		known := slices.ContainsFunc(s.list, func(st *Setting) bool { return slices.Contains(st.envName, name) })
		if strings.HasPrefix(name, EnvPrefix) && !known {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fileValue is a leaf of the config file.
type fileValue struct {
	text string
	line int
}

// parse reads the config file into its leaves, and refuses every key that is no setting.
func (s *Set) parse(name string, data []byte) (map[string]fileValue, error) {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil // an empty file says nothing
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document", name)
	}
	out := map[string]fileValue{}
	if len(doc.Content) == 0 {
		return out, nil
	}
	return out, s.walk(name, "", doc.Content[0], out)
}

func (s *Set) walk(name, path string, n *yaml.Node, out map[string]fileValue) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && s.byKey[path] == nil {
		return nil // "nats:" with nothing below it
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %sexpected key: value lines", name, n.Line, at(path))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := k.Value
		if path != "" {
			key = path + "." + key
		}
		if _, twice := out[key]; twice {
			return fmt.Errorf("%s:%d: %s: given twice", name, k.Line, key)
		}
		var err error
		switch {
		case s.byKey[key] != nil:
			out[key], err = leaf(name, key, v)
		case s.isGroup(key):
			err = s.walk(name, key, v, out)
		default:
			err = fmt.Errorf("%s:%d: %s: no such setting%s", name, k.Line, key, s.suggest(key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// leaf turns a scalar or a list of scalars into the text that a flag would get.
func leaf(name, key string, n *yaml.Node) (fileValue, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return fileValue{}, fmt.Errorf("%s:%d: %s: has no value", name, n.Line, key)
	case n.Kind == yaml.ScalarNode:
		return fileValue{text: n.Value, line: n.Line}, nil
	case n.Kind == yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
				return fileValue{}, fmt.Errorf("%s:%d: %s: expected a list of plain words", name, item.Line, key)
			}
			parts = append(parts, item.Value)
		}
		return fileValue{text: strings.Join(parts, ","), line: n.Line}, nil
	}
	return fileValue{}, fmt.Errorf("%s:%d: %s: expected a single value", name, n.Line, key)
}

func (s *Set) isGroup(key string) bool {
	return slices.ContainsFunc(s.list, func(st *Setting) bool { return strings.HasPrefix(st.Key, key+".") })
}

// suggest names the setting whose key is nearest, if one is near.
func (s *Set) suggest(key string) string {
	best, bestDist := "", 3
	for _, st := range s.list {
		if d := distance(key, st.Key); d < bestDist {
			best, bestDist = st.Key, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, diag+1)
		}
	}
	return row[len(b)]
}
