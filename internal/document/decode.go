package document

import (
	"encoding"
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"slipway/internal/size"
)

// Decode reads root into the struct that into points to. It refuses unknown fields, duplicate keys, nulls, and values
// of the wrong form. Then check adds what else is wrong with the struct, by path; it may be nil. A mistake that may only
// follow from another one is left out. The error is Errors, with the place of every mistake.
//
// A field of the struct needs a json tag with its name. Its tag spec is "filled" if the empty value is refused, and
// "size" if an int64 is written as a size such as "512MiB".
func (k *Kind) Decode(root *Node, into any, check func(*Mistakes)) error {
	d := decoder{kind: k}
	v := reflect.ValueOf(into).Elem()
	d.value(root, v, "", v.Type().Name())
	if check != nil {
		var found Mistakes
		check(&found)
		root.locate(found.found)
		d.merge(found.found)
	}
	return d.Err()
}

// decoder fills a struct from Nodes and collects mistakes.
type decoder struct {
	Mistakes
	kind *Kind
}

// value reads n into v, whose type decides how. At is the key of v in the hints.
func (d *decoder) value(n *Node, v reflect.Value, path, at string) {
	if v.Kind() == reflect.Pointer {
		if n.Kind == Null {
			d.wrongKind(n, v.Type().Elem(), path, at)
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, at)
		return
	}
	switch t := v.Type(); {
	case isText(t):
		d.text(n, v, path, at)
	case t.Kind() == reflect.Struct && n.Kind == Map:
		d.object(n, v, path)
	case t.Kind() == reflect.Map && n.Kind == Map:
		d.dictionary(n, v, path)
	case t.Kind() == reflect.Slice && n.Kind == List:
		d.list(n, v, path)
	case t.Kind() == reflect.Bool && n.Kind == Bool:
		v.SetBool(strings.EqualFold(n.Text, "true"))
	case t.Kind() == reflect.Int && n.Kind == Number, t.Kind() == reflect.Int64 && n.Kind == Number:
		d.integer(n, v, path)
	case t.Kind() == reflect.Float64 && n.Kind == Number:
		d.float(n, v, path)
	default:
		d.wrongKind(n, t, path, at)
	}
}

func (d *decoder) object(n *Node, v reflect.Value, path string) {
	d.unique(n, path)
	for _, m := range n.Members {
		if d.full() {
			return
		}
		f := findField(v.Type(), m.Key)
		if f == nil {
			d.Unknown(m, KeyPath(path, m.Key), d.kind.unknownField(v.Type(), m.Key))
			continue
		}
		into, fieldPath, before := v.Field(f.Index), KeyPath(path, m.Key), len(d.found)
		if f.Size {
			into = reflect.ValueOf((*sizeText)(into.Addr().Interface().(*int64))).Elem()
		}
		d.value(m.Value, into, fieldPath, v.Type().Name()+"."+f.Name)
		if len(d.found) == before {
			d.checkEmpty(m.Value, into, f, fieldPath)
		}
	}
}

// checkEmpty refuses a value that would read as if the field were not there, although its author surely meant
// something: a timeout of 0s, an empty script.
func (d *decoder) checkEmpty(n *Node, v reflect.Value, f *Field, path string) {
	switch {
	case v.CanInt() || v.CanUint() || v.CanFloat():
		if v.IsZero() {
			d.FailAt(n, path, "zero is no value here: leave it out for the default")
		}
	case f.Filled && v.Len() == 0:
		d.FailAt(n, path, "must not be empty")
	}
}

func (d *decoder) dictionary(n *Node, v reflect.Value, path string) {
	d.unique(n, path)
	dict := make(map[string]string, len(n.Members))
	for _, m := range n.Members {
		if d.full() {
			break
		}
		var s string
		d.value(m.Value, reflect.ValueOf(&s).Elem(), KeyPath(path, m.Key), "string")
		dict[m.Key] = s
	}
	v.Set(reflect.ValueOf(dict))
}

func (d *decoder) list(n *Node, v reflect.Value, path string) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		if d.full() {
			return
		}
		d.value(item, v.Index(i), IndexPath(path, i), v.Type().Elem().Name())
	}
}

// text reads a value that is a string in the text of a document.
func (d *decoder) text(n *Node, v reflect.Value, path, at string) {
	plain := n.Plain && (n.Kind == Number || n.Kind == Bool)
	if n.Kind != String && !plain {
		d.wrongKind(n, v.Type(), path, at)
		return
	}
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		if err := into.UnmarshalText([]byte(n.Text)); err != nil {
			d.FailAt(n, path, "not %s: %s", d.kind.Describe(v.Type()), Quote(n.Text))
		}
		*into = into.UTC()
	case encoding.TextUnmarshaler:
		if err := into.UnmarshalText([]byte(n.Text)); err != nil {
			d.FailAt(n, path, "%s", err)
		}
	case *[]byte:
		content, err := base64.StdEncoding.DecodeString(n.Text)
		if err != nil {
			d.FailAt(n, path, "not standard base64 with padding")
		}
		*into = content
	default:
		v.SetString(n.Text)
	}
}

// integer accepts 3 and, as JSON Schema does, 3.0.
func (d *decoder) integer(n *Node, v reflect.Value, path string) {
	if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
		v.SetInt(i)
		return
	}
	const exact = 1 << 53
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		d.FailAt(n, path, "%s", notWhole(n.Text))
		return
	}
	v.SetInt(int64(f))
}

func (d *decoder) float(n *Node, v reflect.Value, path string) {
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		d.FailAt(n, path, "want a number such as 1.5, not %s", Quote(n.Text))
		return
	}
	v.SetFloat(f)
}

// wrongKind reports a value that has the wrong form for its type.
func (d *decoder) wrongKind(n *Node, t reflect.Type, path, at string) {
	h, want := d.kind.Hints[at], d.kind.Describe(t)
	if h.Example != "" {
		want += " such as " + h.Example
	}
	switch {
	case n.Kind == Null:
		d.FailAt(n, path, "%s", wrongKind(want, n.Kind))
	case isText(t) && (n.Kind == Number || n.Kind == Bool):
		d.FailAt(n, path, "%s: put quotes around it", wrongKind(want, n.Kind))
	case t.Kind() == reflect.Bool && n.Kind == String && !n.Plain:
		d.FailAt(n, path, "want %s without quotes", want)
	default:
		d.FailAt(n, path, "%s%s", wrongKind(want, n.Kind), h.Advice)
	}
}

// wrongKind says that a value of the kind got stands where another is wanted.
func wrongKind(want string, got NodeKind) string {
	if got == Null {
		return fmt.Sprintf("no value is given: want %s, or leave it out", want)
	}
	return fmt.Sprintf("want %s, not %s", want, got)
}

// sizeText is an int64 that is written as a size.
type sizeText int64

// UnmarshalText reads a size.
func (s *sizeText) UnmarshalText(text []byte) error {
	n, err := size.Parse(string(text))
	if err == nil {
		*s = sizeText(n)
	}
	return err
}

// isText reports whether values of type t are strings in the text of a document.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || t == reflect.TypeFor[[]byte]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Describe says what a value of type t looks like.
func (k *Kind) Describe(t reflect.Type) string {
	if text, ok := k.Values[t]; ok {
		return text
	}
	switch t {
	case reflect.TypeFor[sizeText]():
		return `a size such as "512MiB"`
	case reflect.TypeFor[time.Time]():
		return `a time such as "2026-01-31T15:04:05Z"`
	case reflect.TypeFor[[]byte]():
		return "base64 text"
	case reflect.TypeFor[[]string]():
		return "a list of strings"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	default:
		return "a map"
	}
}
