package job

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway/internal/document"
)

// foreign is a kind of file that people have at hand and take for a job.
type foreign struct {
	name string
	// has tells it by the keys at the top of the file.
	has func(keys []string) bool
	// because names these keys.
	because string
}

// foreigners are tried in order: those with the clearest marks come first.
var foreigners = []foreign{
	{"a Kubernetes manifest", all("apiVersion", "kind"), "apiVersion and kind"},
	{"a configuration of CircleCI", func(k []string) bool { return all("version", "jobs")(k) && (all("workflows")(k) || all("orbs")(k)) }, "jobs with workflows or orbs"},
	{"a workflow of GitHub Actions", all("on", "jobs"), "on and jobs"},
	{"a Compose file", all("services"), "services"},
	{"a pipeline of GitLab CI", all("stages"), "stages"},
}

// all tells whether all words are among the keys.
func all(words ...string) func([]string) bool {
	return func(keys []string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(keys, w) })
	}
}

// checkForeign tells a file of another system from a job with mistakes, whose list would be long and of no help. It comes
// before the version, which other systems have, too.
func checkForeign(root *document.Node) *FieldError {
	keys := make([]string, len(root.Members))
	scripts := 0
	for i, m := range root.Members {
		keys[i] = m.Key
		if slices.ContainsFunc(m.Value.Members, func(below document.Member) bool { return below.Key == "script" }) {
			scripts++
		}
	}
	if slices.Contains(keys, "steps") {
		return nil
	}
	if scripts > 0 {
		return foreign{name: "a pipeline of GitLab CI", because: "jobs with a script"}.mistake(root)
	}
	return foreignKeys(keys, root)
}

func foreignKeys(keys []string, at *document.Node) *FieldError {
	for _, f := range foreigners {
		if f.has(keys) {
			return f.mistake(at)
		}
	}
	return nil
}

func (f foreign) mistake(at *document.Node) *FieldError {
	return &FieldError{Line: max(at.Line, 1), Column: max(at.Column, 1), Message: fmt.Sprintf(
		"this is %s (it has %s), and no job: a job has an image and a list of steps; docs/job.md shows under \"From other formats\" how to write one", f.name, f.because)}
}

// topKey is a key at the top of a YAML file.
var topKey = regexp.MustCompile(`(?m)^"?([A-Za-z][A-Za-z_-]*)"?:(?:\s|$)`)

// foreignText is checkForeign for a text that is no job's notation: other systems' files have anchors, tags and several
// documents, which are refused before anything is known of the keys.
func foreignText(data []byte) *FieldError {
	var keys []string
	text, _, _ := strings.Cut(string(data), "\n---")
	for _, m := range topKey.FindAllStringSubmatch(text, -1) {
		keys = append(keys, m[1])
	}
	if slices.Contains(keys, "steps") {
		return nil
	}
	return foreignKeys(keys, &document.Node{})
}
