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

// parse reads the config file into its leaves, and notes what it can't read and every key that is no setting.
func (s *Set) parse(data []byte) walk {
	w := walk{set: s, leaves: map[string]fileValue{}}
	root, err := jobyaml.Parse(data)
	mistake := (*job.FieldError)(nil)
	switch {
	case errors.As(err, &mistake):
		w.mistakes = append(w.mistakes, mistake)
	case err != nil:
		w.fail("", 0, 0, "%v", err)
	case root.Kind != job.NodeNull: // an empty file says nothing
		w.group("", root)
	}
	return w
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

// clouds reports whether key may have no value, or a default, only because of a mistake in the file: one of the file as a
// whole, at the key, in its group, or at a word that is like no setting and may be meant to be the group's name.
func (w *walk) clouds(key string) bool {
	group, _, nested := strings.Cut(key, ".")
	for _, m := range w.mistakes {
		top, _, below := strings.Cut(m.Path, ".")
		if top == group || top == "" {
			return true
		}
		if near := w.set.nearest(m.Path); !below && (near == key || near == "" && nested) {
			return true
		}
	}
	return false
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

func (s *Set) suggest(key string) string { return suggest.DidYouMean(s.nearest(key)) }

// nearest names the setting whose key is nearest, if one is near.
func (s *Set) nearest(key string) string {
	keys := make([]string, len(s.list))
	for i, st := range s.list {
		keys[i] = st.Key
	}
	return suggest.Nearest(key, keys)
}
