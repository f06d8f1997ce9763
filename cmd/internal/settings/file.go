package settings

import (
	"errors"
	"slices"
	"strings"

	"slipway/internal/document"
	"slipway/internal/document/yamldoc"
	"slipway/internal/suggest"
)

// kind is what the reader of config files adds to that of all documents.
var kind = document.Kind{Name: "config file", Unknown: "no such setting"}

// fileValue is the value of a setting in the config file.
type fileValue struct {
	text         string
	line, column int
}

// configFile is a config file that was read: its values by key, and its mistakes.
type configFile struct {
	document.Mistakes
	set    *Set
	values map[string]fileValue
}

// parse reads the config file, and notes what it can't read and every key that is no setting.
func (s *Set) parse(data []byte) *configFile {
	f := &configFile{set: s, values: map[string]fileValue{}}
	root, err := yamldoc.Parse(data, &kind)
	var syntax *document.FieldError
	switch {
	case errors.As(err, &syntax):
		f.Add(syntax)
	case err != nil:
		f.Fail("", "%v", err)
	case root.Kind != document.Null: // an empty file says nothing
		f.group("", root)
	}
	return f
}

// group reads the keys below path.
func (f *configFile) group(path string, n *document.Node) {
	f.EachMember(n, path, "key: value lines", func(key string, m document.Member) {
		switch {
		case f.set.byKey[key] != nil:
			f.value(key, m.Value)
		case !f.set.isGroup(key):
			f.Unknown(m, key, kind.UnknownKey(key, f.set.keys()))
		case m.Value.Kind != document.Null: // else "nats:" with nothing below it
			f.group(key, m.Value)
		}
	})
}

// value turns a scalar or a list of scalars into the text that a flag would get.
func (f *configFile) value(key string, n *document.Node) {
	text := n.Text
	switch n.Kind {
	case document.Null:
		f.FailAt(n, key, "no value is given: want one, or leave it out")
		return
	case document.Map:
		f.FailAt(n, key, "want a single value, not %s", n.Kind)
		return
	case document.List:
		var parts []string
		for _, item := range n.Items {
			if item.Kind == document.List || item.Kind == document.Map || strings.Contains(item.Text, ",") {
				f.FailAt(item, key, "want a list of plain words")
				return
			}
			parts = append(parts, item.Text)
		}
		text = strings.Join(parts, ",")
	}
	f.values[key] = fileValue{text, n.Line, n.Column}
}

// mayBeAffected reports whether key may have no value, or a default, only because of a mistake in the file: one of the
// file as a whole, at the key, in its group, or at a word that is like no setting and may be meant to be the group's name.
func (f *configFile) mayBeAffected(key string) bool {
	group, _, nested := strings.Cut(key, ".")
	for _, m := range f.Found() {
		top, _, below := strings.Cut(m.Path, ".")
		if top == group || top == "" {
			return true
		}
		if near := suggest.Nearest(m.Path, f.set.keys()); !below && (near == key || near == "" && nested) {
			return true
		}
	}
	return false
}

func (s *Set) isGroup(key string) bool {
	return slices.ContainsFunc(s.list, func(st *Setting) bool { return strings.HasPrefix(st.Key, key+".") })
}

func (s *Set) keys() []string {
	keys := make([]string, len(s.list))
	for i, st := range s.list {
		keys[i] = st.Key
	}
	return keys
}

// sourced puts the name of the file, and the place in it, before each mistake.
func (f *configFile) sourced(fileName string) (errs []error) {
	var all document.Errors
	if errors.As(f.Err(), &all) {
		for _, m := range all {
			errs = append(errs, errors.New(m.In(fileName)))
		}
	}
	return errs
}
