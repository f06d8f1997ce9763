package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const unitFile = "../../deploy/systemd/slipway-worker.service"

func readUnit(t *testing.T) string {
	t.Helper()
	unit, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(unit)
}

// TestUnit_Doctor: the doctor that people are told to run has the settings and the rights of the service.
func TestUnit_Doctor(t *testing.T) {
	unit := readUnit(t)
	told := regexp.MustCompile(`(?m)^# .*\bdoctor\b.*--config.*$`).FindString(unit)
	if told == "" {
		t.Fatal("the unit tells of no doctor")
	}
	for _, key := range []string{"User", "SupplementaryGroups", "EnvironmentFile"} {
		line := regexp.MustCompile(`(?m)^` + key + `=.*$`).FindString(unit)
		if line == "" || !strings.Contains(told, "-p "+line+" ") {
			t.Errorf("the line with doctor lacks -p %s:\n%s", line, told)
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) serve (.*)$`).FindStringSubmatch(unit)
	if start == nil || !strings.HasSuffix(told, start[1]+" doctor "+start[2]) {
		t.Errorf("doctor is not called as serve is, %q:\n%s", start, told)
	}
}

// TestUnit asks systemd itself, with a program that exists in the place of the worker.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze, which only a system with systemd has")
	}
	unit := readUnit(t)
	const start = "ExecStart=/usr/local/bin/slipway-worker"
	if !strings.Contains(unit, start) {
		t.Fatalf("the unit has no %s", start)
	}
	file := filepath.Join(t.TempDir(), "slipway-worker.service")
	if err := os.WriteFile(file, []byte(strings.Replace(unit, start, "ExecStart=/bin/true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "slipway-worker.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
