package yamldoc

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"slipway/internal/document"
)

var kind = &document.Kind{Name: "file", MaxBytes: 1 << 16, MaxDepth: 4}

type inner struct {
	Size int64 `json:"size" spec:"size"`
}

type file struct {
	Name  string            `json:"name" spec:"filled"`
	On    bool              `json:"on"`
	Count int               `json:"count"`
	Share float64           `json:"share"`
	Words []string          `json:"words"`
	Vars  map[string]string `json:"vars"`
	Inner *inner            `json:"inner"`
}

func decode(data []byte) (f file, err error) {
	root, err := Parse(data, kind)
	if err != nil {
		return f, err
	}
	err = kind.Decode(root, &f, nil)
	return f, err
}

// TestParse: a value is taken as it is spelled where a string is wanted, whatever YAML would make of it.
func TestParse(t *testing.T) {
	for _, text := range []string{
		"name: 1.10\non: true\ncount: 3\nshare: 1.5\nwords: [no, 0755]\nvars: {A: 0x1F}\ninner: {size: 2g}\n",
		`{"name": "1.10", "on": true, "count": 3.0, "share": 15e-1, "words": ["no", "0755"], "vars": {"A": "0x1F"}, "inner": {"size": "2GiB"}}`,
	} {
		f, err := decode([]byte(text))
		if err != nil || f.Name != "1.10" || !f.On || f.Count != 3 || f.Share != 1.5 || strings.Join(f.Words, " ") != "no 0755" || f.Vars["A"] != "0x1F" || f.Inner.Size != 2<<30 {
			t.Errorf("%s: got %+v, %v", text, f, err)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"name: [":                           "line 2, column 1: not YAML: ",
		"\tname: a":                         "line 1, column 1: not YAML: indent with spaces, not with tabs",
		"inner: {size: &a 1}":               "line 1, column 15: anchors and aliases",
		"words: [[[[a]]]]":                  "line 1, column 11: nested deeper than 4 levels",
		"name: ''":                          "line 1, column 7: name: must not be empty",
		"count: 0":                          "line 1, column 8: count: zero is no value here",
		"inner: {size: 0}":                  "line 1, column 15: inner.size: zero is no value here",
		"inner: {size: []}":                 `line 1, column 15: inner.size: want a size such as "512MiB", not a list`,
		`{"inner": {"size": 5}}`:            `line 1, column 20: inner.size: want a size such as "512MiB", not a number: put quotes around it`,
		"inner: {sise: 1}":                  `line 1, column 9: inner.sise: unknown field: did you mean "size"?`,
		"inner: {zzzzzz: 1}":                `line 1, column 9: inner.zzzzzz: unknown field; there are size`,
		"on: 'true'":                        "line 1, column 5: on: want true or false without quotes",
		"vars: {A: ~}":                      "line 1, column 11: vars.A: no value is given: want a string, or leave it out",
		"name: a\nname: b":                  "line 2, column 1: name: given twice, first on line 1",
		"name: []\ncount: x\nshare: .inf":   "line 1, column 7: name: want a string, not a list\nline 2, column 8: count: want a whole number, not a string\nline 3, column 8: share: want a number such as 1.5, not \".inf\"",
		"#" + strings.Repeat("x", 1<<16):    "65537 bytes, more than the 65536 allowed",
		"words: [a, b]\n---\nwords: [c, d]": "line 2, column 1: a second document starts here",
	} {
		_, err := decode([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParse: no text panics, and every mistake can be shown and has a place.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"name: a\nwords: [b]\ninner: {size: 1k}", `{"name": "a", "vars": {"x": "y"}}`, "a: &x [*x]", "<<: {a: b}", "? [a]\n: b", "--- !!str a", "a: |\n  b\n c", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := decode(data)
		var one *document.FieldError
		if err == nil {
			return
		}
		if !errors.As(err, &one) {
			t.Fatalf("got %T %v, want FieldErrors", err, err)
		}
		var all document.Errors
		if !errors.As(err, &all) {
			all = document.Errors{one}
		}
		for _, e := range all {
			tooLarge := e.Line == 0 && strings.Contains(e.Message, "allowed")
			if strings.ContainsFunc(e.Error(), unicode.IsControl) || !tooLarge && (e.Line < 1 || e.Column < 1) || len(e.Error()) > 2000 {
				t.Fatalf("got %q, which can't be shown or has no place", e.Error())
			}
		}
	})
}
