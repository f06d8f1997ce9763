package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"slipway/test/procgroup"
)

// outcome is what became of a mutant.
type outcome string

const (
	killed   outcome = "killed"    // a test failed
	timedOut outcome = "timed out" // the tests did not end
	survived outcome = "survived"
	broken   outcome = "not built" // go/types took it, the compiler or the linker did not
)

// verdict is the outcome of one mutant.
type verdict struct {
	mutant
	outcome outcome
	by      string // the first test that failed
}

// bench tries mutants.
type bench struct {
	suites []*suite
	tmp    string
	limit  time.Duration // on top of four times what the tests took
	all    bool          // run every test, also those that do not reach the place
}

// try runs the tests that reach the mutant. dir is for the mutant alone, and removed.
func (b *bench) try(ctx context.Context, target string, m mutant, dir string) (verdict, error) {
	v := verdict{mutant: m, outcome: survived}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, m)
	if err != nil {
		return v, err
	}
	for i, s := range b.suites {
		tests := b.reaching(s, target, m)
		if len(tests) == 0 {
			continue
		}
		binary := filepath.Join(dir, fmt.Sprintf("%d.test", i))
		if out, err := command(ctx, "", nil, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, s.path); err != nil {
			v.outcome, v.by = broken, string(out)
			return v, ctx.Err()
		}
		for _, group := range quickFirst(tests) {
			v.outcome, v.by = b.run(ctx, s.dir, binary, dir, group)
			if v.outcome != survived {
				return v, ctx.Err()
			}
		}
	}
	return v, ctx.Err()
}

// reaching returns the tests of s that the mutant may matter to.
func (b *bench) reaching(s *suite, target string, m mutant) []*test {
	if b.all || m.everywhere {
		return s.tests
	}
	line, col := m.position()
	var tests []*test
	for _, t := range s.tests {
		if t.reaches(target+"/"+filepath.Base(m.file.path), line, col) {
			tests = append(tests, t)
		}
	}
	return tests
}

// quickFirst puts the tests that take a second or more into a group of their own: most mutants die before.
func quickFirst(tests []*test) [][]*test {
	var quick, slow []*test
	for _, t := range tests {
		if t.took < time.Second {
			quick = append(quick, t)
		} else {
			slow = append(slow, t)
		}
	}
	var groups [][]*test
	for _, g := range [][]*test{quick, slow} {
		if len(g) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

func (b *bench) run(ctx context.Context, dir, binary, tmp string, tests []*test) (outcome, string) {
	limit, names := b.limit, make([]string, len(tests))
	for i, t := range tests {
		limit += 4 * t.took
		names[i] = t.name
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	out, err := command(ctx, dir, []string{"TMPDIR=" + tmp}, binary, "-test.failfast", "-test.timeout=0", "-test.run", "^("+strings.Join(names, "|")+")$")
	switch {
	case errors.Is(context.Cause(ctx), errLimit):
		return timedOut, fmt.Sprintf("after %v", limit.Round(time.Second))
	case err == nil:
		return survived, ""
	}
	if m := failed.FindSubmatch(out); m != nil {
		return killed, string(m[1])
	}
	return killed, "a panic or exit"
}

var errLimit = errors.New("the tests did not end in time")

func writeOverlay(dir string, m mutant) (string, error) {
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, m.apply(), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {m.file.path: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// command runs a program and returns all that it printed. When ctx ends, everything that the program started ends, too.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	procgroup.Own(cmd)
	return cmd.CombinedOutput()
}
