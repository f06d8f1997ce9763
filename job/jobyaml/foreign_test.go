package jobyaml

import (
	"errors"
	"strings"
	"testing"

	"slipway/job"
)

// TestForeign: a file of another system is called by its name, in one message.
func TestForeign(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"GitHub Actions": {"name: ci\non: push\njobs:\n  a:\n    runs-on: x\n    steps: [{run: x}]\n", "a workflow of GitHub Actions (it has on and jobs)"},
		"GitHub, quoted": {"\"on\": [push]\njobs: {}\n", "GitHub Actions"},
		"Compose":        {"version: \"3.8\"\nservices:\n  web: {image: x}\n", "a Compose file"},
		"Compose with anchors": {
			"x-base: &base\n  image: x\nservices:\n  web:\n    <<: *base\n", "a Compose file",
		},
		"GitLab, stages":         {"stages: [test]\ntest:\n  script: [x]\n", "a pipeline of GitLab CI"},
		"GitLab, script":         {"image: x\ntest:\n  script: [x]\n", "a pipeline of GitLab CI (it has jobs with a script)"},
		"GitLab, with a tag":     {"stages: [test]\ntest:\n  script: !reference [.setup, script]\n", "a pipeline of GitLab CI"},
		"Kubernetes":             {"apiVersion: batch/v1\nkind: Job\nspec: {}\n", "a Kubernetes manifest"},
		"Kubernetes, two in one": {"apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Pod\n", "a Kubernetes manifest"},
		"CircleCI":               {"version: 2.1\njobs: {}\nworkflows: {}\n", "a configuration of CircleCI"},
		"Kubernetes in JSON":     {`{"apiVersion": "v1", "kind": "Pod"}`, "a Kubernetes manifest"},
	} {
		_, err := Decode([]byte(tc.text))
		var errs job.Errors
		if !errors.As(err, &errs) || len(errs) != 1 || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `docs/job.md shows under "From other formats"`) {
			t.Errorf("%s: got %v, want one mistake with %q", name, err, tc.want)
		}
	}
	section(t, "## From other formats")
}

// TestForeign_Jobs: a job with mistakes stays one.
func TestForeign_Jobs(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a name of another format": {steps + "services: {}\n", "services: unknown field"},
		"a version of the future":  {"version: 7\nimage: a\n", "version"},
		"a stage":                  {steps + "stages: [a]\n", "stages: unknown field"},
		"a script without a list":  {"image: a\nscript: [x]\n", `script: unknown field: did you mean "steps"`},
		"a text that is no YAML":   {steps + "services: [\n", "not YAML"},
		"an anchor of a job's":     {"image: &a x\n" + "steps: [{run: x}]\n", "anchors"},
		"processors of a job":      {steps + "cpu: 2\n", `cpu: unknown field: did you mean "resources.cpus"?`},
		"memory of a job":          {steps + "memory: 1g\n", `memory: unknown field: did you mean "resources.memory"?`},
		"a size with a fraction":   {steps + "resources: {memory: 1.5GiB}\n", "want a whole number"},
	} {
		_, err := Decode([]byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "other formats") {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
