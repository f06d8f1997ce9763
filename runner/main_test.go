package runner

import (
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDeps holds the arrow that matters most to programs that embed a worker:
// no adapter, and no third party but zap, comes with it.
func TestDeps(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v (no go command here?)", err)
	}
	own := map[string]bool{
		"slipway/runner": true, "slipway/job": true, "slipway/container": true, "slipway/sync": true,
		"slipway/runner/loop":       true,
		"slipway/internal/document": true, "slipway/internal/pause": true, "slipway/internal/size": true, "slipway/internal/suggest": true, // the leaves' reader
		"slipway/internal/hint":          true,
		"slipway/sync/internal/parallel": true,
	}
	seen := 0
	for pkg := range strings.Lines(string(out)) {
		pkg = strings.TrimSpace(pkg)
		first, _, _ := strings.Cut(pkg, "/")
		switch {
		case strings.HasPrefix(pkg, "slipway/runner/internal/"):
		case first == "slipway":
			if !own[pkg] {
				t.Errorf("runner depends on %s", pkg)
			}
			seen++
		case strings.HasPrefix(pkg, "go.uber.org/zap"), strings.HasPrefix(pkg, "go.uber.org/multierr"):
		case strings.Contains(first, ".") && first != "vendor":
			t.Errorf("runner depends on %s, a third party beside zap and its needs", pkg)
		}
	}
	if seen != len(own) {
		t.Errorf("go list shows %d packages of slipway, want %d", seen, len(own))
	}
}
