package document

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"slipway/internal/suggest"
)

// Field is one field of a struct as the text of a document has it.
type Field struct {
	// Name is the key.
	Name string
	// Index is the position in the struct.
	Index int
	// Filled: the empty value is refused.
	Filled bool
	// Size: an int64 that is written as a size.
	Size bool
}

var fieldCache sync.Map // reflect.Type → []Field

// FieldsOf lists the fields of a struct type in their order.
func FieldsOf(t reflect.Type) []Field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]Field)
	}
	fields := make([]Field, t.NumField())
	for i := range fields {
		tag := t.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		fields[i] = Field{Name: name, Index: i, Filled: tag.Get("spec") == "filled", Size: tag.Get("spec") == "size"}
	}
	fieldCache.Store(t, fields)
	return fields
}

// findField returns the field called name, or nil.
func findField(t reflect.Type, name string) *Field {
	fields := FieldsOf(t)
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

// EachMember calls visit with each member of n and its path. A key that comes again is a mistake and not visited, and
// so is an n that is no map; want says what to call one.
func (m *Mistakes) EachMember(n *Node, path, want string, visit func(path string, member Member)) {
	if n.Kind != Map {
		m.FailAt(n, path, "%s", wrongKind(want, n.Kind))
		return
	}
	again := m.unique(n, path)
	for i, member := range n.Members {
		if m.full() {
			return
		}
		if !again[i] {
			visit(KeyPath(path, member.Key), member)
		}
	}
}

// unique reports keys that come twice, and returns their positions.
func (m *Mistakes) unique(n *Node, path string) (again map[int]bool) {
	lines := make(map[string]int, len(n.Members))
	for i, member := range n.Members {
		if m.full() {
			return again
		}
		first, twice := lines[member.Key]
		if !twice {
			lines[member.Key] = member.Line
			continue
		}
		if again == nil {
			again = map[int]bool{}
		}
		again[i] = true
		m.Add(&FieldError{Path: KeyPath(path, member.Key), Line: member.Line, Column: member.Column, Message: givenTwice(first)})
	}
	return again
}

// Unknown adds that nobody knows the key of member. A field that is missing beside it may be the one that was meant.
func (m *Mistakes) Unknown(member Member, path, message string) {
	m.Add(&FieldError{Path: path, Line: member.Line, Column: member.Column, Message: message, unknown: true})
}

// UnknownKey says that key is none of known, and which one was probably meant.
func (k *Kind) UnknownKey(key string, known []string) string {
	return k.unknown() + suggest.DidYouMean(suggest.Nearest(key, known))
}

func (k *Kind) unknown() string {
	if k.Unknown == "" {
		return "unknown field"
	}
	return k.Unknown
}

// unknownField says why key is no field of t, and what was probably meant.
func (k *Kind) unknownField(t reflect.Type, key string) string {
	if slices.Contains(k.Unsupported[t.Name()], key) {
		return "not supported by this version"
	}
	folded := suggest.Fold(key)
	if name, ok := k.Synonyms[t.Name()][folded]; ok {
		return k.unknown() + suggest.DidYouMean(name)
	}
	var names []string
	for _, f := range FieldsOf(t) {
		names = append(names, f.Name)
	}
	if name := suggest.Nearest(folded, names); name != "" {
		return k.unknown() + suggest.DidYouMean(name)
	}
	if other, ok := k.Elsewhere[t.Name()]; ok && findField(other.Type, folded) != nil {
		return k.unknown() + advice(other.Advice)
	}
	if len(names) <= maxListed {
		return k.unknown() + "; there are " + strings.Join(names, ", ")
	}
	return k.unknown()
}

// maxListed is the largest number of fields that a message lists.
const maxListed = 10
