package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var testKind = &Kind{Name: "file", MaxBytes: 1 << 16}

// readPairs reads {"a": [{"n": 1}], …} and returns the sum of all n.
func readPairs(data []byte) (sum int64, err error) {
	r, err := NewReader(data, testKind)
	if err != nil {
		return 0, err
	}
	err = r.Object(func(string) error {
		return r.Array(func() error {
			return r.Object(func(key string) error {
				switch key {
				case "n":
					n, err := r.Int()
					if n > 100 {
						return errors.New("more than 100")
					}
					sum += n
					return err
				case "s":
					_, err := r.String()
					return err
				}
				_, err := r.Raw()
				return err
			})
		})
	})
	if err == nil {
		err = r.End()
	}
	return sum, err
}

func TestReader(t *testing.T) {
	long := strings.Repeat("k", 2*maxKnownKey)
	for text, want := range map[string]string{
		`{}`: "sum 0",
		` { "a" : [ {"n" : 1} , {"n":-3} ] , "b":[{"n":40, "x":{"y":[null,true,1e9,"\u00e9"]}}] } `: "sum 38",
		`{"` + long + `": [{"n": 1}], "b": [{"` + long + `": 2}]}`:                                  "sum 1",
		"{\"a\":\n [{\"n\": 1, \"n\": 2}]}":                                                         "line 2, column 12: a[0].n: given twice, first on line 2",
		`{"a": [], "a": []}`:                                                                        "line 1, column 11: a: given twice, first on line 1",
		`{"a": [{"x": {"y": 1, "y": 2}}]}`:                                                          "line 1, column 23: a[0].x.y: given twice, first on line 1",
		`{"a\\": [], "a\"b": [{"n": 1}]}`:                                                           "sum 1",
		"{\"a\\n\": [], \"a\n\": []}":                                                               `line 1, column 15: the control character 0x0a must be escaped in a string`,
		`{"ü": [{"n": "1"}]}`:                                                                       `line 1, column 14: ["ü"][0].n: want a whole number, not a string`,
		`{"a": [{"n": 1.5}]}`:                                                                       `line 1, column 14: a[0].n: want a whole number, not "1.5"`,
		`{"a": [{"n": 9223372036854775808}]}`:                                                       `line 1, column 14: a[0].n: want a whole number, not "9223372036854775808"`,
		`{"a": [{"n": -0}]}`:                                                                        `line 1, column 14: a[0].n: want a whole number, not "-0"`,
		`{"a": [{"n": 101}]}`:                                                                       `line 1, column 14: a[0].n: more than 100`,
		`{"a": [{"s": null}]}`:                                                                      `line 1, column 14: a[0].s: no value is given: want a string, or leave it out`,
		`{"a": {}}`:                                                                                 `line 1, column 7: a: want a list, not a map`,
		`[]`:                                                                                        `line 1, column 1: want a map, not a list`,
		`x`:                                                                                         `line 1, column 1: 'x' where a map is wanted`,
		``:                                                                                          `line 1, column 1: the text ends where a map is wanted`,
		`{"a": [1,]}`:                                                                               `line 1, column 8: a[0]: want a map, not a number`,
		`{"a": [{}`:                                                                                 `line 1, column 10: a: the text ends where ',' or ']' is wanted`,
		`{} {}`:                                                                                     `line 1, column 4: data after the end of the file`,
		`{"a": [{"x": ` + strings.Repeat("[", 40):                                                   `nested deeper than 32 levels`,
		"{\"a\xff\": []}":                                                                           `line 1, column 4: byte 0xff is not UTF-8: save the text as UTF-8`,
		strings.Repeat(" ", 1<<16+1):                                                                `65537 bytes, more than the 65536 allowed`,
	} {
		sum, err := readPairs([]byte(text))
		got := fmt.Sprintf("sum %d", sum)
		if err != nil {
			got = err.Error()
		}
		if strings.HasPrefix(want, "nested") { // where exactly is not the point
			got = got[max(0, len(got)-len(want)):]
		}
		if got != want {
			t.Errorf("%.60s: got %q, want %q", text, got, want)
		}
	}
}

// TestReader_Members: the search for a duplicate compares each key with those before it.
func TestReader_Members(t *testing.T) {
	var b strings.Builder
	for i := range maxMembers + 1 {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	_, err := readPairs([]byte(`{"a":[{` + b.String()[1:] + `}]}`))
	if want := "a[0]: more than 256 fields"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// FuzzReader: a text is accepted if and only if encoding/json accepts it, but for what this package says that it refuses.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{"a": [{"n": 1, "s": "x\n\u00e9\ud83d\ude00"}]}`, `{"a\\": 1, "a\"": 2}`, `[1, -0, 1.5e+3, true, null]`, `{"a": [}`, "\"\xff\"", `"\ud800"`, `[[[]]`, `01`, `{"a":1,}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := testKind.Parse(data)
		checkError(t, err)
		checkAgainstJSON(t, data, n, err)
		_, err = readPairs(data)
		checkError(t, err)
		r, err := NewReader(data, testKind)
		if err != nil {
			return
		}
		raw, rawErr := r.Raw()
		if rawErr == nil && (n == nil && r.End() == nil || !json.Valid(raw)) {
			t.Errorf("Raw accepts %q", data)
		}
		checkError(t, rawErr)
	})
}

func checkAgainstJSON(t *testing.T, data []byte, n *Node, err error) {
	t.Helper()
	var want any
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	switch valid := json.Valid(data); {
	case err == nil && !valid:
		t.Fatalf("%q is accepted", data)
	case err == nil:
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if got := plain(n); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", data, got, want)
		}
	case valid && !refusedByUs(data, err):
		t.Errorf("%q: got %v, but it is JSON", data, err)
	}
}

func refusedByUs(data []byte, err error) bool {
	return !utf8.Valid(data) || len(data) > testKind.MaxBytes ||
		strings.Contains(err.Error(), "nested deeper") || strings.Contains(err.Error(), "not an escape that JSON knows") // half a surrogate pair
}

// plain is n as encoding/json would give it.
func plain(n *Node) any {
	switch n.Kind {
	case Map:
		m := map[string]any{}
		for _, member := range n.Members {
			m[member.Key] = plain(member.Value)
		}
		return m
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = plain(item)
		}
		return list
	case Number:
		return json.Number(n.Text)
	case Bool:
		return n.Text == "true"
	case Null:
		return nil
	}
	return n.Text
}

// checkError: whatever the input was, the message can be shown and has a place.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := err.(*FieldError) //nolint:errorlint // the very type is promised
	if !ok {
		t.Fatalf("got %T %v, want a FieldError", err, err)
	}
	tooLarge := e.Line == 0 && strings.Contains(e.Message, "allowed")
	if !utf8.ValidString(e.Error()) || strings.ContainsFunc(e.Error(), unicode.IsControl) || !tooLarge && (e.Line < 1 || e.Column < 1) {
		t.Fatalf("got %q, which can't be shown or has no place", e.Error())
	}
}
