package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/internal/suggest"
	"slipway/job"
	"slipway/job/jobyaml"
)

// fileValue is a leaf of the config file.
type fileValue struct {
	text         string
	line, column int
}

// parse reads the config file into its leaves, and refuses every key that is no setting.
func (s *Set) parse(name string, data []byte) (map[string]fileValue, error) {
	root, err := jobyaml.Parse(data)
	if mistake := (*job.FieldError)(nil); errors.As(err, &mistake) {
		return nil, errors.New(mistake.In(name))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w := walk{set: s, leaves: map[string]fileValue{}}
	if root.Kind != job.NodeNull { // an empty file says nothing
		w.group("", root)
	}
	var errs []error
	for _, mistake := range w.mistakes {
		errs = append(errs, errors.New(mistake.In(name)))
	}
	return w.leaves, errors.Join(errs...)
}

// walk goes through a config file, and collects its leaves and its mistakes.
type walk struct {
	set      *Set
	leaves   map[string]fileValue
	mistakes []*job.FieldError
}

func (w *walk) fail(path string, line, column int, format string, args ...any) {
	w.mistakes = append(w.mistakes, &job.FieldError{Path: path, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
}

// group reads the keys below path.
func (w *walk) group(path string, n *job.Node) {
	if n.Kind == job.NodeNull {
		return // "nats:" with nothing below it
	}
	if n.Kind != job.NodeMap {
		w.fail(path, n.Line, n.Column, "want key: value lines, not %s", n.Kind)
		return
	}
	lines := map[string]int{}
	for _, m := range n.Members {
		key := m.Key
		if path != "" {
			key = path + "." + key
		}
		first, twice := lines[key]
		lines[key] = m.Line
		switch {
		case twice:
			w.fail(key, m.Line, m.Column, "given twice, first on line %d", first)
		case w.set.byKey[key] != nil:
			w.leaf(key, m.Value)
		case w.set.isGroup(key):
			w.group(key, m.Value)
		default:
			w.fail(key, m.Line, m.Column, "no such setting%s", w.set.suggest(key))
		}
	}
}

// leaf turns a scalar or a list of scalars into the text that a flag would get.
func (w *walk) leaf(key string, n *job.Node) {
	text := n.Text
	switch n.Kind {
	case job.NodeNull:
		w.fail(key, n.Line, n.Column, "has no value")
		return
	case job.NodeMap:
		w.fail(key, n.Line, n.Column, "want a single value, not %s", n.Kind)
		return
	case job.NodeList:
		var parts []string
		for _, item := range n.Items {
			if item.Kind == job.NodeList || item.Kind == job.NodeMap || strings.Contains(item.Text, ",") {
				w.fail(key, item.Line, item.Column, "want a list of plain words")
				return
			}
			parts = append(parts, item.Text)
		}
		text = strings.Join(parts, ",")
	}
	w.leaves[key] = fileValue{text, n.Line, n.Column}
}

func (s *Set) isGroup(key string) bool {
	return slices.ContainsFunc(s.list, func(st *Setting) bool { return strings.HasPrefix(st.Key, key+".") })
}

// suggest names the setting whose key is nearest, if one is near.
func (s *Set) suggest(key string) string {
	keys := make([]string, len(s.list))
	for i, st := range s.list {
		keys[i] = st.Key
	}
	return suggest.DidYouMean(suggest.Nearest(key, keys))
}
