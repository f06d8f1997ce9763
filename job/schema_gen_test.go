package job

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/internal/document"
)

// object is a JSON object that keeps its order.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, part := range []any{m.key, m.value} {
			data, err := marshal(part)
			if err != nil {
				return nil, err
			}
			if j == 1 {
				b.WriteByte(':')
			}
			b.Write(data)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// get returns the value at key, or nil.
func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// generator makes one schema.
type generator struct {
	docs   comments
	defs   object
	done   map[reflect.Type]bool
	closed bool // unknown fields are refused
}

// makeSchema makes the schema of a type and of all that it holds.
func makeSchema(t *testing.T, root reflect.Type, id string, closed bool) []byte {
	t.Helper()
	g := &generator{docs: readComments(t), done: map[reflect.Type]bool{root: true}, closed: closed}
	schema := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", id},
		{"title", "slipway " + strings.ToLower(root.Name())},
	}
	schema = append(schema, g.structure(root)...)
	schema = append(schema, member{"$defs", g.defs})
	data, err := marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// structure describes a struct type.
func (g *generator) structure(t reflect.Type) object {
	var properties object
	for _, f := range document.FieldsOf(t) {
		field := t.Field(f.Index)
		value := g.value(field.Type)
		if g.closed && f.Filled {
			value = append(value, notEmpty(field.Type)...)
		}
		if g.closed {
			value = append(value, rules[t.Name()+"."+f.Name]...)
		}
		if doc := g.field(t, field.Name).description(value); doc != "" {
			value = append(value, member{"description", doc})
		}
		properties = append(properties, member{f.Name, value})
	}
	s := object{{"type", "object"}}
	if doc := g.docs.ofType(t); doc != "" {
		s = append(s, member{"description", doc})
	}
	s = append(s, member{"properties", properties})
	if !g.closed {
		return s
	}
	s = append(s, member{"additionalProperties", false})
	return append(s, structRules[t.Name()]...)
}

func notEmpty(t reflect.Type) object {
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		return object{{"minItems", 1}}
	}
	return object{{"minLength", 1}}
}

// value describes a value of type t.
func (g *generator) value(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return g.value(t.Elem())
	}
	switch t {
	case reflect.TypeFor[Bytes](), reflect.TypeFor[Mode]():
		return g.ref(t, append(object{{"type", g.text()}}, typeRules[t.Name()]...))
	case reflect.TypeFor[Duration](), reflect.TypeFor[ID]():
		return g.ref(t, append(object{{"type", "string"}}, typeRules[t.Name()]...))
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[[]byte]():
		return object{{"type", "string"}, {"contentEncoding", "base64"}}
	}
	if words := enumOf(t); words != nil {
		return g.ref(t, object{{"type", "string"}, {"enum", words}})
	}
	switch t.Kind() {
	case reflect.Struct:
		if !g.done[t] {
			g.done[t] = true
			g.define(t, g.structure(t))
		}
		return object{{"$ref", "#/$defs/" + t.Name()}}
	case reflect.Slice:
		return object{{"type", "array"}, {"items", g.value(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", g.value(t.Elem())}}
	}
	if t.Kind() == reflect.String {
		return object{{"type", g.text()}}
	}
	return object{{"type", map[reflect.Kind]string{
		reflect.Bool: "boolean", reflect.Int: "integer",
		reflect.Int64: "integer", reflect.Uint64: "integer", reflect.Float64: "number",
	}[t.Kind()]}}
}

// text is the type of a string. In YAML an unquoted 17 or true stands for its text where a job wants one, as in labels or
// mode, so an editor that checks a job file must not mark it. The reader of JSON wants quotes.
func (g *generator) text() any {
	if g.closed {
		return []string{"string", "number", "boolean"}
	}
	return "string"
}

// ref describes a named type once and points to it.
func (g *generator) ref(t reflect.Type, s object) object {
	if !g.done[t] {
		g.done[t] = true
		doc := g.docs.ofType(t)
		if g.closed {
			doc = sentences(doc, g.docs.ofWords(t))
		}
		if doc != "" {
			s = append(s, member{"description", doc})
		}
		g.define(t, s)
	}
	return object{{"$ref", "#/$defs/" + t.Name()}}
}

func (g *generator) define(t reflect.Type, s object) {
	g.defs = append(g.defs, member{t.Name(), s})
}

// enumOf lists the words of a closed list.
func enumOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[Priority]():
		return words(Priorities())
	case reflect.TypeFor[PullPolicy]():
		return words(pullPolicies())
	case reflect.TypeFor[Network]():
		return words(networks())
	case reflect.TypeFor[Relaxation]():
		return words(relaxations())
	case reflect.TypeFor[PullWorkspace]():
		return words(workspacePulls())
	case reflect.TypeFor[PushWorkspace]():
		return words(workspacePushes())
	case reflect.TypeFor[Condition]():
		return words(conditions())
	case reflect.TypeFor[Outcome]():
		return words(Outcomes())
	case reflect.TypeFor[Reason]():
		return words(Reasons())
	case reflect.TypeFor[StepStatus]():
		return words(stepStatuses())
	}
	return nil
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
