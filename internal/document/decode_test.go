package document

import "testing"

// TestDecode: every kind of document gets strictness, places, and words that were probably meant.
func TestDecode(t *testing.T) {
	type inner struct {
		Size int64 `json:"size" spec:"size"`
	}
	type file struct {
		Words []string `json:"words"`
		Inner inner    `json:"inner"`
	}
	for text, want := range map[string]string{
		`{"words": ["a"], "inner": {"size": "1KiB"}}`: "",
		`{"word": []}`:                `f: line 1, column 2: word: unknown field: did you mean "words"?`,
		`{"inner": {"size": "lots"}}`: `f: line 1, column 20: inner.size: not a size such as "512MiB" or "2g": "lots"`,
		`{"words": ["a", "bad"]}`:     `f: line 1, column 17: words[1]: bad`,
		`[]`:                          `f: line 1, column 1: want a map, not a list`,
	} {
		kind := &Kind{Name: "file"}
		root, err := kind.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var f file
		err = kind.Decode(root, &f, func(m *Mistakes) {
			for i, w := range f.Words {
				if w == "bad" {
					m.Fail(IndexPath("words", i), "bad")
				}
			}
		})
		got := ""
		if err != nil {
			got = "f: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestFieldError_In(t *testing.T) {
	for want, e := range map[string]*FieldError{
		"f.yaml:3:7: steps[0].run: no": {Line: 3, Column: 7, Path: "steps[0].run", Message: "no"},
		"f.yaml:3:7: no":               {Line: 3, Column: 7, Message: "no"},
		"f.yaml: no":                   {Message: "no"},
	} {
		if got := e.In("f.yaml"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
