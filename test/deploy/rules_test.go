package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	testimage "slipway/test/image"
)

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

func loadRules(t *testing.T) rules {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	return r
}

func TestAlertsAreWrittenForPeople(t *testing.T) {
	tests, err := os.ReadFile(rulesTestFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range loadRules(t).Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Slipway") {
				t.Errorf("alert %q: the name is taken, or does not begin with Slipway", r.Alert)
			}
			seen[r.Alert] = true
			for _, key := range []string{"summary", "description", "runbook"} {
				if r.Annotations[key] == "" {
					t.Errorf("alert %s has no %s", r.Alert, key)
				}
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("alert %s: severity %q, want critical or warning", r.Alert, s)
			}
			for _, want := range []string{
				fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"`, r.Alert), // quiet or not
				fmt.Sprintf(`- labels: 'ALERTS{alertname=%q`, r.Alert),           // and seen firing
			} {
				if !strings.Contains(string(tests), want) {
					t.Errorf("alert %s: %s lacks a case with %s", r.Alert, rulesTestFile, want)
				}
			}
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool := findPromtool(t)
	for _, args := range [][]string{
		{"check", "rules", "slipway.rules.yml"},
		{"check", "config", "prometheus.yml"},
		{"test", "rules", "slipway.rules.test.yml"},
	} {
		if out, err := promtool(args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// findPromtool returns what makes a command of promtool in the folder of the rules: this machine's, or else the one in
// the image of Prometheus.
func findPromtool(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	folder, err := filepath.Abs(filepath.Dir(rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	if path, err := exec.LookPath("promtool"); err == nil {
		return func(args ...string) *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), path, args...)
			cmd.Dir = folder
			return cmd
		}
	}
	testimage.Require(t, testimage.Prometheus)
	return func(args ...string) *exec.Cmd {
		docker := []string{"create", "--network", "none", "--workdir", "/etc/prometheus", "--entrypoint", "/bin/promtool", testimage.Prometheus}
		out, err := exec.CommandContext(t.Context(), "docker", append(docker, args...)...).Output()
		if err != nil {
			t.Fatalf("docker create: %v", err)
		}
		id := strings.TrimSpace(string(out))
		t.Cleanup(func() {
			if out, err := exec.Command("docker", "rm", "--force", "--volumes", id).CombinedOutput(); err != nil {
				t.Errorf("docker rm: %v\n%s", err, out)
			}
		})
		// Copied, since a mount would need an engine on this machine.
		if out, err := exec.CommandContext(t.Context(), "docker", "cp", folder+"/.", id+":/etc/prometheus").CombinedOutput(); err != nil {
			t.Fatalf("docker cp: %v\n%s", err, out)
		}
		return exec.CommandContext(t.Context(), "docker", "start", "--attach", id)
	}
}
