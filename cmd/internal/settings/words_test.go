package settings

import (
	"strings"
	"testing"

	"slipway/container/policyfile"
	"slipway/job"
	"slipway/job/jobyaml"
)

// TestSameWords: a mistake is told in the same words in every kind of document, and no kind gives another one's advice.
// Package sync alone reads states; its tests hold the same words.
func TestSameWords(t *testing.T) {
	readers := map[string]func(t *testing.T, text string) error{
		"job":  func(_ *testing.T, text string) error { _, err := job.Decode([]byte(text)); return err },
		"yaml": func(_ *testing.T, text string) error { _, err := jobyaml.Decode([]byte(text)); return err },
		"settings": func(t *testing.T, text string) error {
			s, _ := setup(t)
			return s.Resolve(nil, "c.yaml", strings.NewReader(text))
		},
		"policy": func(_ *testing.T, text string) error { _, _, err := policyfile.Parse([]byte(text)); return err },
	}
	deep := strings.Repeat("[", 50) + strings.Repeat("]", 50)
	for name, tc := range map[string]struct {
		want  string
		texts map[string]string
	}{
		"unknown key": {`: did you mean "`, map[string]string{
			"job": `{"imagee": "a"}`, "yaml": "imagee: a", "settings": "slost: 1", "policy": "alow: []",
		}},
		"duplicate key": {"given twice, first on line 1", map[string]string{
			"job": `{"image": "a", "image": "a"}`, "yaml": "image: a\nimage: a", "settings": "slots: 1\nslots: 1", "policy": "max: {}\nmax: {}",
		}},
		"wrong form": {", not a list", map[string]string{
			"job": `{"image": []}`, "yaml": "image: []", "settings": "nats: []", "policy": "max: []",
		}},
		"no value": {"no value is given: want ", map[string]string{
			"job": `{"image": null}`, "yaml": "image:", "settings": "slots:", "policy": "max: {cpus: ~}",
		}},
		"trailing JSON": {"data after the end of the ", map[string]string{
			"job": `{} {}`, "yaml": `{} {}`, "settings": `{} {}`, "policy": `{} {}`,
		}},
		"a second document": {"a second document starts here", map[string]string{
			"yaml": "image: a\n---\nimage: a", "settings": "slots: 1\n---\nslots: 1", "policy": "max: {}\n---\nmax: {}",
		}},
		"too deep": {"nested deeper than 3", map[string]string{
			"job": `{"image": ` + deep + `}`, "yaml": "image: " + deep, "settings": "slots: " + deep, "policy": "max: " + deep,
		}},
		"too large": {"more than the 1048576 (1 MiB) allowed", map[string]string{
			"job": `{"image": "` + strings.Repeat("a", 1<<20) + `"}`, "yaml": "#" + strings.Repeat("a", 1<<20), "settings": "#" + strings.Repeat("a", 1<<20),
			"policy": "#" + strings.Repeat("a", 1<<20),
		}},
		"not UTF-8": {"byte 0xff is not UTF-8: save the text as UTF-8", map[string]string{
			"job": "{\"image\": \"\xff\"}", "yaml": "image: \xff", "settings": "slots: \xff", "policy": "max: \xff",
		}},
	} {
		for kind, text := range tc.texts {
			err := readers[kind](t, text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %s: got %v, want it to contain %q", name, kind, err, tc.want)
			}
			ofJobs := kind == "job" || kind == "yaml"
			if err != nil && !ofJobs && (strings.Contains(err.Error(), "inputs") || strings.Contains(err.Error(), "content_base64")) {
				t.Errorf("%s, %s: got %v, which is advice about a job", name, kind, err)
			}
		}
	}
}
