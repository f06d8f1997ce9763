package job

import (
	"encoding"
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decode reads one job from JSON and validates it. Its error is Errors: every
// mistake with its field and place, or one if the text is no JSON at all.
// For files, which may be YAML, see package jobyaml.
func Decode(data []byte) (*Job, error) {
	root, err := ParseJSON(data)
	if err != nil {
		return nil, asErrors(err)
	}
	return DecodeNode(root)
}

// asErrors turns the one error of a parser into Errors, so that all callers see one type.
func asErrors(err error) error {
	if field, ok := err.(*FieldError); ok { //nolint:errorlint // ParseJSON wraps nothing
		return Errors{field}
	}
	return err
}

// DecodeNode makes a job of parsed text and validates it. Its error is Errors.
// It refuses unknown fields, duplicate keys, nulls, values of the wrong kind, and whatever
// Validate refuses; a mistake that only follows from another one is not reported.
func DecodeNode(root *Node) (*Job, error) {
	if err := checkVersion(root); err != nil {
		return nil, Errors{err}
	}
	var j Job
	if err := root.Fill(&j, j.check); err != nil {
		return nil, err
	}
	return &j, nil
}

// Fill reads n into the struct that into points to, by the rules of DecodeNode, and
// with its messages: for a file that is written as jobs are. Each field needs a json tag. check finds
// what a field alone can't show, by its path. The error is Errors.
func (n *Node) Fill(into any, check func() Errors) error {
	var d decoder
	v := reflect.ValueOf(into).Elem()
	d.value(n, v, "", v.Type().Name())
	errs := d.errs
	if found := check(); len(found) > 0 {
		n.locate(found)
		errs = errs.merge(found)
	}
	return errs.errorOrNil()
}

// checkVersion looks at the version before all else: in a job of another
// version the other mistakes are none.
func checkVersion(root *Node) *FieldError {
	for _, m := range root.Members {
		isText := m.Value.Kind == NodeString || m.Value.Kind == NodeNumber
		if m.Key == "version" && isText && m.Value.Text != "" && m.Value.Text != Version {
			return m.Value.errorf("version", fmt.Sprintf("%s is not supported: this slipway reads version %q",
				quote(m.Value.Text), Version))
		}
	}
	return nil
}

// decoder fills a Job from Nodes and collects mistakes.
type decoder struct{ errs Errors }

// full reports that enough mistakes were found: a hostile text can hold a million of them.
func (d *decoder) full() bool { return len(d.errs) >= maxFound }

func (d *decoder) fail(n *Node, path, format string, args ...any) {
	d.errs.add(n.errorf(path, fmt.Sprintf(format, args...)))
}

// wrongKind reports a value that has the wrong form for its type. At is its key in hints.
func (d *decoder) wrongKind(n *Node, t reflect.Type, path, at string) {
	h, want := hints[at], describe(t)
	if h.example != "" {
		want += " such as " + h.example
	}
	switch {
	case n.Kind == NodeNull:
		d.fail(n, path, "no value is given: want %s, or leave it out", want)
	case isText(t) && (n.Kind == NodeNumber || n.Kind == NodeBool):
		d.fail(n, path, "want %s, not %s: put quotes around it", want, n.Kind)
	case t.Kind() == reflect.Bool && n.Kind == NodeString && !n.Plain:
		d.fail(n, path, "want %s without quotes", want)
	default:
		d.fail(n, path, "want %s, not %s%s", want, n.Kind, h.advice)
	}
}

// value reads n into v, whose type decides how.
func (d *decoder) value(n *Node, v reflect.Value, path, at string) {
	if v.Kind() == reflect.Pointer {
		if n.Kind == NodeNull {
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
	case t.Kind() == reflect.Struct && n.Kind == NodeMap:
		d.object(n, v, path)
	case t.Kind() == reflect.Map && n.Kind == NodeMap:
		d.dictionary(n, v, path)
	case t.Kind() == reflect.Slice && n.Kind == NodeList:
		d.list(n, v, path)
	case t.Kind() == reflect.Bool && n.Kind == NodeBool:
		v.SetBool(strings.EqualFold(n.Text, "true"))
	case t.Kind() == reflect.Int && n.Kind == NodeNumber, t.Kind() == reflect.Int64 && n.Kind == NodeNumber:
		d.integer(n, v, path)
	case t.Kind() == reflect.Float64 && n.Kind == NodeNumber:
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
			d.errs.add(&FieldError{
				Path: keyPath(path, m.Key), Line: m.Line, Column: m.Column,
				Message: unknownField(v.Type(), m.Key), unknown: true,
			})
			continue
		}
		fieldPath, before := keyPath(path, m.Key), len(d.errs)
		d.value(m.Value, v.Field(f.index), fieldPath, v.Type().Name()+"."+f.name)
		if len(d.errs) == before {
			d.checkEmpty(m.Value, v.Field(f.index), f, fieldPath)
		}
	}
}

// checkEmpty refuses what would read as if the field were not there, although
// whoever wrote it surely meant something: a timeout of 0s, an empty script.
func (d *decoder) checkEmpty(n *Node, v reflect.Value, f *field, path string) {
	switch {
	case v.CanInt() || v.CanUint() || v.CanFloat():
		if v.IsZero() {
			d.fail(n, path, "zero is no value here: leave it out for the default")
		}
	case f.filled && v.Len() == 0:
		d.fail(n, path, "must not be empty")
	}
}

// unique reports keys that come twice.
func (d *decoder) unique(n *Node, path string) {
	lines := make(map[string]int, len(n.Members))
	for _, m := range n.Members {
		if d.full() {
			return
		}
		if line, twice := lines[m.Key]; twice {
			d.errs.add(&FieldError{
				Path: keyPath(path, m.Key), Line: m.Line, Column: m.Column,
				Message: fmt.Sprintf("given twice, first on line %d", line),
			})
			continue
		}
		lines[m.Key] = m.Line
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
		d.value(m.Value, reflect.ValueOf(&s).Elem(), keyPath(path, m.Key), "string")
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
		d.value(item, v.Index(i), indexPath(path, i), v.Type().Elem().Name())
	}
}

// text reads a value that is a string in the text of a job.
func (d *decoder) text(n *Node, v reflect.Value, path, at string) {
	plain := n.Plain && (n.Kind == NodeNumber || n.Kind == NodeBool)
	if n.Kind != NodeString && !plain {
		d.wrongKind(n, v.Type(), path, at)
		return
	}
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		if err := into.UnmarshalText([]byte(n.Text)); err != nil {
			d.fail(n, path, "not %s: %s", describe(v.Type()), quote(n.Text))
		}
		*into = into.UTC()
	case encoding.TextUnmarshaler:
		if err := into.UnmarshalText([]byte(n.Text)); err != nil {
			d.fail(n, path, "%s", err)
		}
	case *[]byte:
		content, err := base64.StdEncoding.DecodeString(n.Text)
		if err != nil {
			d.fail(n, path, "not standard base64 with padding")
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
		d.fail(n, path, "want a whole number, not %s", quote(n.Text))
		return
	}
	v.SetInt(int64(f))
}

func (d *decoder) float(n *Node, v reflect.Value, path string) {
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		d.fail(n, path, "want a number such as 1.5, not %s", quote(n.Text))
		return
	}
	v.SetFloat(f)
}

// isText reports whether values of type t are strings in the text of a job.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || t == reflect.TypeFor[[]byte]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// describe says what a value of type t looks like.
func describe(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return `a duration such as "90s"`
	case reflect.TypeFor[Bytes]():
		return `a size such as "512MiB"`
	case reflect.TypeFor[Mode]():
		return `a permission such as "0644"`
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
