package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"slipway/cmd/internal/settings"
)

// groups are the tables of docs/settings.md, in their order. A setting without a group in its key is in the one that names it.
var groups = []struct{ name, title string }{
	{"", "The worker"},
	{"nats", "The queue"},
	{"timing", "Clocks"},
	{"s3", "The store"},
	{"docker", "The engine"},
	{"job_logs", "What jobs print"},
	{"metrics", "Metrics"},
	{"log", "The worker's own log"},
}

// settingTables writes all settings as tables.
func settingTables(list []*settings.Setting) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | default | what |\n|---|---|---|\n", g.title)
		for _, s := range list {
			group, _, nested := strings.Cut(s.Key, ".")
			if nested != (g.name != "") || nested && group != g.name {
				continue
			}
			what, notes := strings.ReplaceAll(s.Usage(), "|", "\\|"), []string{}
			if s.Secret {
				notes = append(notes, "a secret: no flag")
			}
			for _, name := range s.OtherEnv() {
				notes = append(notes, "also `"+name+"`")
			}
			if len(notes) > 0 {
				what += " (" + strings.Join(notes, "; ") + ")"
			}
			def := s.DefaultText()
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Key, def, what)
		}
	}
	return b.String()
}

// TestSettingsPage holds the tables of docs/settings.md, which -update rewrites.
func TestSettingsPage(t *testing.T) {
	const path, begin, end = "../../docs/settings.md", "<!-- tables -->\n", "\n<!-- end of tables -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	got, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s lacks %q or %q", path, begin, end)
	}
	list := addConfig(pflag.NewFlagSet("", pflag.ContinueOnError)).set.List()
	want := strings.TrimSuffix(settingTables(list), "\n")
	for _, s := range list {
		if strings.Count(want, "| `"+s.Key+"` |") != 1 {
			t.Errorf("%s is not in one table: its group is new", s.Key)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s differs (go test -update rewrites it), want\n%s", path, want)
	}
}
