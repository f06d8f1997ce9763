package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeRefuses(t *testing.T) {
	schema := compile(t, Schema())
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			j, err := Decode([]byte(tc.text))
			var errs Errors
			if !errors.As(err, &errs) || len(errs) != 1 || j != nil {
				t.Fatalf("got %v and %v, want one mistake", j, err)
			}
			if got := errs[0].Path + ": " + errs[0].Message; !strings.Contains(": "+got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := err.Error(); strings.ContainsFunc(got, steersTerminal) {
				t.Errorf("got %q, which holds control characters", got)
			}
			if got := len(err.Error()); got > 400 {
				t.Errorf("got a message of %d bytes", got)
			}
			if errs[0].Line < 1 && tc.name != "too large" {
				t.Errorf("got line %d, want a place", errs[0].Line)
			}
			if got := fits(t, schema, []byte(tc.text)) != nil; got != tc.schema {
				t.Errorf("schema refuses: got %v, want %v", got, tc.schema)
			}
		})
	}
}

func TestDecodeAcceptsCorpus(t *testing.T) {
	schema := compile(t, Schema())
	files, err := filepath.Glob("testdata/valid/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v and %v, want files", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(t, schema, data); err != nil {
			t.Errorf("%s: the schema refuses: %v", file, err)
		}
		j, err := Decode(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		checkRoundTrip(t, j)
		checkRoundTrip(t, j.WithDefaults())
	}
}

// checkRoundTrip writes j, reads it back, and writes it again.
func checkRoundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, j *Job,
) {
	t.Helper()
	if err := j.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	data, err := Encode(j)
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	if diff := cmp.Diff(j, back, equateEmpty); diff != "" {
		t.Fatalf("written and read (-want +got):\n%s", diff)
	}
	again, err := Encode(back)
	if err != nil || string(again) != string(data) {
		t.Fatalf("written again: got %s and %v, want %s", again, err, data)
	}
}

func TestDecodePlaces(t *testing.T) {
	const text = `{
  "image": "alpine",
  "env": {"Ü1": "x", "A": 1},
  "steps": [
    {"run": "x", "timeout": "90"},
    {"read": "a", "dir": "b"},
    {"name": "ü", "nme": "x"}
  ]
}`
	want := []string{
		`line 3, column 17: env["Ü1"]: not a variable's name`,
		`line 3, column 27: env.A: want a string, not a number`,
		`line 5, column 29: steps[0].timeout: a duration needs a unit`,
		`line 6, column 26: steps[1].dir: only with run or command`,
		`line 7, column 19: steps[2].nme: unknown field: did you mean "name"?`,
	}
	_, err := Decode([]byte(text))
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("got\n%v\nwant %d mistakes", err, len(want))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestErrorsAreCapped(t *testing.T) {
	_, err := Decode([]byte(`{"image":"a","steps":[` + list(150, `{"x%d":1}`) + `]}`))
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != MaxErrors {
		t.Fatalf("got %d mistakes, want %d", len(errs), MaxErrors)
	}
	if got, want := errs[MaxErrors-1].Message, "there are more mistakes"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var first *FieldError
	if !errors.As(err, &first) || first.Path != "steps[0].x0" {
		t.Errorf("got %v, want the first mistake", first)
	}
}

// A hostile text must not cost much.
func TestDecodeHostileTextsEnd(t *testing.T) {
	half := MaxSpecBytes / 2
	for _, text := range []string{
		repeat("[", half), `{"a":` + repeat(`{"a":`, 1000), `[` + repeat("0,", half-2) + `0]`,
		`{` + list(60000, `"k%d":0`) + `}`, `{"env":{` + list(50000, `"%d":""`) + `}}`, `"` + repeat(`\u0041`, half/6) + `"`,
		`{"image":"` + repeat("a-", half-20) + `!"}`, `{"steps":[` + repeat(`{},`, 100000) + `{}]}`,
	} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("got no error for %.20q", text)
		}
	}
}
