package jobyaml

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"slipway/job"
)

const pageFile = "../../docs/job.md"

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is what stands on the page from one heading to the next.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(readPage(t, pageFile), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", pageFile, heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

var yamlRE = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of a job is one.
func TestPageExamples(t *testing.T) {
	for _, file := range []string{pageFile, "../../README.md"} {
		examples := yamlRE.FindAllStringSubmatch(readPage(t, file), -1)
		if len(examples) == 0 {
			t.Errorf("%s: got no example", file)
		}
		for _, m := range examples {
			if _, err := Decode([]byte(m[1])); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, m[1])
			}
		}
	}
}

var valueRowRE = regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.+?) \\| `(.+?)` \\| (.+?) \\|$")

// The table of values in YAML and JSON says what is done.
func TestPageValues(t *testing.T) {
	rows := valueRowRE.FindAllStringSubmatch(section(t, "### Strings in YAML and in JSON"), -1)
	if len(rows) < 10 {
		t.Fatalf("got %d rows, want the table", len(rows))
	}
	for _, m := range rows {
		for text, want := range map[string]string{
			"image: a\nsteps: [{run: x}]\n" + m[1]:                  m[2],
			`{"image": "a", "steps": [{"run": "x"}], ` + m[3] + `}`: m[4],
		} {
			if got := verdict(text); got != want && (got == "refused" || want != "accepted") {
				t.Errorf("%s: got %s, the page says %s", text, got, want)
			}
		}
	}
}

// verdict is "refused", or the value of the variable A in code, or "accepted" without one.
func verdict(text string) string {
	j, err := Decode([]byte(text))
	switch {
	case err != nil:
		return "refused"
	case j.Env["A"] != "":
		return "`" + j.Env["A"] + "`"
	}
	return "accepted"
}

// Syntax that the page shows in passing.
func TestPageSyntax(t *testing.T) {
	values := section(t, "## Values")
	for name, ok := range map[string]func(string) bool{
		"duration":   func(s string) bool { return new(job.Duration).UnmarshalText([]byte(s)) == nil },
		"size":       func(s string) bool { return new(job.Bytes).UnmarshalText([]byte(s)) == nil },
		"permission": func(s string) bool { return new(job.Mode).UnmarshalText([]byte(s)) == nil },
	} {
		_, item, found := strings.Cut(values, "* **"+name+"**")
		item, _, _ = strings.Cut(item, "\n* ")
		examples := regexp.MustCompile("`([0-9][^`]*)`").FindAllStringSubmatch(item, -1)
		if !found || len(examples) == 0 {
			t.Errorf("%s: the page has no example", name)
		}
		for _, m := range examples {
			if !ok(m[1]) {
				t.Errorf("%s: %s is none", name, m[1])
			}
		}
	}
}
