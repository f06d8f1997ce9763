package jobyaml

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"slipway/job"
)

func TestDecodeYAML(t *testing.T) {
	got := decodeFile(t, "testdata/valid/full.yaml")
	script, grace := "#!/bin/sh\necho hello\n", job.Duration(0)
	want := &job.Job{
		Version: "1", ID: "01JDQK5Y8ZRT6H2V9WXN3M4P7Q", Name: "Übung 1", Image: "golang:1.26", User: "1000",
		Labels:    map[string]string{"answer": "no", "release": "1.10", "day": "2026-01-02"},
		Env:       map[string]string{"PORT": "8080", "DEBUG": "true", "HEX": "0x1F", "EMPTY": ""},
		Resources: job.Resources{CPUs: 2, Memory: 1 << 30, Pids: 64},
		Timeout:   job.Duration(20 * time.Minute),
		NotBefore: time.Date(2020, 2, 29, 23, 59, 59, 0, time.UTC),
		Inputs:    []job.Input{{Path: "run.sh", Mode: 0o755, Content: &script}},
		Steps: []job.Step{
			{Name: "test", Run: "go vet ./...\ngo test ./...\n", Timeout: job.Duration(5 * time.Minute), Grace: &grace},
			{Command: []string{"sleep", "1"}, ContinueOnError: true},
			{List: ".", If: job.IfAlways},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeJSONFiles(t *testing.T) {
	for _, file := range []string{"../testdata/valid/full.json", "../testdata/valid/minimal.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := job.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, before := range []string{"", "\n ", "\ufeff"} {
			got, err := Decode([]byte(before + string(data)))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

func decodeFile(t *testing.T, file string) *job.Job {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return j
}

const steps = "image: a\nsteps: [{run: x}]\n"

var refusals = []struct{ name, text, want string }{
	{"empty", "", "line 1, column 1: the job is empty"},
	{"comment", "# nothing\n", "line 1, column 1: the job is empty"},
	{"marker", "---\n", "line 2, column 1: the job is empty"},
	{"two documents", steps + "---\nimage: b\n", "line 3, column 1: a second document starts here"},
	{"anchor", steps + "env: &e {A: b}\n", "line 3, column 6: anchors and aliases"},
	{"alias", steps + "env: {A: &a b, B: *a}\n", "line 3, column 10: anchors and aliases"},
	{"unknown alias", steps + "env: *e\n", "line 3, column 6: anchors and aliases"},
	{"anchor on a key", steps + "&a env: {}\n", "line 3, column 1: anchors and aliases"},
	{"merge", steps + "<<: {user: '0'}\n", "line 3, column 1: merge keys (<<)"},
	{"tag", steps + "name: !!str 5\n", "line 3, column 7: tags (!)"},
	{"own tag", steps + "name: !secret x\n", "line 3, column 7: tags (!)"},
	{"tag on a key", steps + "!!str name: x\n", "line 3, column 1: tags (!)"},
	{"list as key", steps + "? [a]\n: b\n", "line 3, column 3: a key must be a string"},
	{"duplicate", steps + "image: b\n", "line 3, column 1: image: given twice, first on line 1"},
	{"tab", "image: a\nsteps:\n\t- run: x\n", "line 3, column 1: not YAML: indent with spaces, not with tabs"},
	{"colon", "image: a: b\n", "line 1, column 9: not YAML: mapping values are not allowed"},
	{"open quote", "image: 'a\nsteps:\n", "not YAML: found unexpected end of stream while scanning a quoted scalar that starts on line 1"},
	{"control character", "image: a\nname: \"ü\x01\"\n", "line 2, column 9: not YAML: control characters"},
	{"invalid UTF-8", "image: a\nname: ü\xff\n", "line 2, column 8: byte 0xff is not UTF-8"},
	{"UTF-16", "\xff\xfei\x00m\x00", "line 1, column 1: byte 0xff is not UTF-8"},
	{"too deep", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested deeper than 32 levels"},
	{"no value", steps + "name:\n", "line 3, column 6: name: no value is given: want a string, or leave it out"},
	{"tilde", steps + "env: {A: ~}\n", "line 3, column 10: env.A: no value is given"},
	{"yes", "image: a\nsteps:\n  - run: x\n    continue_on_error: yes\n", "line 4, column 24: steps[0].continue_on_error: want true or false, not a string"},
	{"hex", steps + "retry: {attempts: 0x3}\n", `line 3, column 19: retry.attempts: want a whole number, not "0x3"`},
	{"infinity", steps + "resources: {cpus: .inf}\n", `line 3, column 19: resources.cpus: want a number such as 1.5, not ".inf"`},
	{"number as duration", steps + "timeout: 90\n", `line 3, column 10: timeout: a duration needs a unit: "90s" for seconds`},
	{"step without a dash", "image: a\nsteps:\n  run: x\n", `line 3, column 3: steps: want a list such as [{run: "make test"}], not a map`},
	{"misspelled", "image: a\nsteps:\n  - rn: x\n", `line 3, column 5: steps[0].rn: unknown field: did you mean "run"?`},
	{"JSON", `{"image": "a", "steps": [{"run": 1}]}`, "line 1, column 34: steps[0].run: want a string, not a number"},
}

func TestDecodeRefuses(t *testing.T) {
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode([]byte(tc.text))
			var errs job.Errors
			if !errors.As(err, &errs) || len(errs) != 1 {
				t.Fatalf("got %v, want one mistake", err)
			}
			if got := err.Error(); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A small text must not stand for a large job, nor cost much.
func TestDecodeHostileTextsEnd(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "]\n"
	}
	for _, text := range []string{
		bomb, strings.Repeat("[", 1<<19), strings.Repeat("- ", 1<<19), strings.Repeat("? ", 1<<19), strings.Repeat("a:\n", 1<<17),
		strings.Repeat("&a ", 1<<18), strings.Repeat("x", job.MaxSpecBytes+1),
	} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("got no error for %.20q", text)
		}
	}
}

func FuzzDecodeYAML(f *testing.F) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("got %v and %v, want files", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, tc := range refusals {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Decode(data)
		if err != nil {
			checkMessages(t, err)
			return
		}
		if err := j.Validate(); err != nil {
			t.Fatalf("decoded and not valid: %v", err)
		}
		text, err := job.Encode(j)
		if err != nil {
			t.Skip("a job that is larger in JSON than in YAML")
		}
		back, err := job.Decode(text)
		if err != nil {
			t.Fatalf("decode %s: %v", text, err)
		}
		again, err := job.Encode(back)
		if err != nil || string(again) != string(text) {
			t.Fatalf("got %s and %v, want %s", again, err, text)
		}
	})
}

// checkMessages: whatever the input was, the messages can be shown and have a place.
func checkMessages(t *testing.T, err error) {
	t.Helper()
	errs, ok := err.(job.Errors) //nolint:errorlint // the very type is promised
	if !ok || len(errs) == 0 || len(errs) > job.MaxErrors {
		t.Fatalf("got %T %v, want Errors", err, err)
	}
	for _, e := range errs {
		if strings.ContainsFunc(e.Error(), unicode.IsControl) || len(e.Error()) > 2000 || e.Line < 1 || e.Column < 1 {
			t.Fatalf("got %q, which can't be shown or has no place", e.Error())
		}
	}
}
