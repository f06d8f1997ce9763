package main

import (
	"context"
	"errors"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMutators: the comments of testdata/mutators list the mutants of each function.
func TestMutators(t *testing.T) {
	t.Chdir("testdata")
	p, err := load(t.Context(), "./mutators")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, d := range p.files[0].ast.Decls {
		var doc *ast.CommentGroup
		name := ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			doc, name = d.Doc, d.Name.Name
		case *ast.GenDecl:
			doc = d.Doc
		}
		for line := range strings.Lines(doc.Text()) {
			if text, ok := strings.CutPrefix(line, "want: "); ok {
				want[name] = append(want[name], strings.TrimSpace(text))
			}
		}
	}
	got := map[string][]string{}
	for _, m := range p.mutants() {
		if !p.compiles(&m) {
			continue
		}
		fn := m.fn[strings.IndexByte(m.fn, '.')+1:]
		_, text, _ := strings.Cut(m.key(), strings.TrimSpace(m.fn+" "+m.op)+": ")
		got[fn] = append(got[fn], m.op+": "+text)
	}
	for fn := range want {
		slices.Sort(got[fn])
		slices.Sort(want[fn])
		if !slices.Equal(got[fn], want[fn]) {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", fn, strings.Join(got[fn], "\n\t"), strings.Join(want[fn], "\n\t"))
		}
		delete(got, fn)
	}
	for fn, unwanted := range got {
		t.Errorf("%s: got %q, want nothing", fn, unwanted)
	}
}

// TestRun: mutants of a small package are killed, time out, or survive; nothing is written into the tree.
func TestRun(t *testing.T) {
	t.Chdir("testdata")
	before := tree(t)
	out, survivors := mutate(t, options{verbose: true, jobs: 2, limit: 5 * time.Second})
	for _, want := range []string{
		`killed +suite/suite.go:8: suite/suite.go Shorten never: len\(text\) > most  TestShorten`,
		`survived +suite/suite.go:8: suite/suite.go Shorten boundary: len\(text\) > most -> len\(text\) >= most`,
		`killed +suite/suite.go:16: suite/suite.go Count boundary: i < n -> i <= n  TestCount`,
		`timed out suite/suite.go:25: suite/suite.go Even drop: n\+\+  after \d+s`,
		`survived +suite/suite.go:34: suite/suite.go duration: 3 -> 30`,
		`suite/suite.go:8: .*\n    - \tif len\(text\) > most {\n    \+ \tif len\(text\) >= most {\n`,
		`: 1 that no test reaches`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("got\n%s\nwant a match of %s", out, want)
		}
	}
	if survivors == 0 || strings.Contains(out, "Unreached") {
		t.Errorf("got %d survivors, want some, and no mutant of what no test reaches:\n%s", survivors, out)
	}
	if after := tree(t); !slices.Equal(before, after) {
		t.Errorf("got files %q, want the same as before: %q", after, before)
	}
}

// TestJudged: what was judged is not printed again, and what is judged of a mutant that is gone is named.
func TestJudged(t *testing.T) {
	t.Chdir("testdata")
	file := filepath.Join(t.TempDir(), "judged.txt")
	text := "# a comment\n\nsuite/suite.go duration: 3 -> 30 | nobody waits for it\nsuite/suite.go Gone drop: f() | it was here\nother/other.go F drop: f() | of another package\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, survivors := mutate(t, options{only: "duration", jobs: 1, judged: file})
	if survivors != 0 || !strings.Contains(out, "1 survived (1 judged, 0 new)") || strings.Contains(out, "suite.go:34") {
		t.Errorf("got %d survivors and\n%s\nwant the judged one counted and not printed", survivors, out)
	}
	if !strings.Contains(out, ": suite/suite.go Gone drop: f()\n") || strings.Contains(out, "other.go") {
		t.Errorf("got\n%s\nwant the stale entry of this package named", out)
	}
	if err := os.WriteFile(file, []byte("suite/suite.go duration: 3 -> 30\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readJudged(file); err == nil || !strings.Contains(err.Error(), "judged.txt:1: ") {
		t.Errorf("got error %v, want one that names the line without a reason", err)
	}
}

// TestSample: a seed draws the same mutants each time, another seed others.
func TestSample(t *testing.T) {
	t.Chdir("testdata")
	draw := func(seed uint64) string {
		out, _ := mutate(t, options{list: true, sample: 3, seed: seed})
		return out[strings.IndexByte(out, '\n'):]
	}
	if a, b := draw(1), draw(1); a != b {
		t.Errorf("got for one seed\n%s\nand\n%s", a, b)
	}
	if a, b := draw(1), draw(2); a == b {
		t.Errorf("got the same for two seeds\n%s", a)
	}
}

// TestFailingTests: tests that fail anyway would kill every mutant, so nothing is tried.
func TestFailingTests(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module x\n\ngo 1.26\n",
		"x.go":      "package x\n\nfunc F() int { return 1 }\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { t.Error(F()) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	_, err := run(t.Context(), ".", options{jobs: 1}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "TestF fails without a mutation") {
		t.Errorf("got error %v, want one that names the test", err)
	}
}

// TestInterrupted: a run that is ended early tells what it found out until then.
func TestInterrupted(t *testing.T) {
	t.Chdir("testdata")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &watched{word: "killed ", found: cancel}
	_, err := run(ctx, "./suite", options{verbose: true, jobs: 1, limit: time.Minute}, out)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if !regexp.MustCompile(`\n[1-9] tried in .*: [1-9] killed`).MatchString(out.String()) {
		t.Errorf("got\n%s\nwant the sum of what was tried", out.String())
	}
}

// watched calls found when word is written.
type watched struct {
	strings.Builder
	word  string
	found func()
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.word) {
		w.found()
	}
	return w.Builder.Write(b)
}

// TestLines: a mutant has as many lines as the source, else the traces of its failed tests would point elsewhere.
func TestLines(t *testing.T) {
	t.Chdir("testdata")
	p, err := load(t.Context(), "./mutators")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Count(string(p.files[0].src), "\n")
	for _, m := range p.mutants() {
		if got := strings.Count(string(m.apply()), "\n"); got != want {
			t.Errorf("%s: got %d lines, want %d", m.key(), got, want)
		}
	}
}

func mutate(t *testing.T, o options) (string, int) {
	t.Helper()
	var out strings.Builder
	survivors, err := run(t.Context(), "./suite", o, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), survivors
}

// tree lists the files below the working directory.
func tree(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, _ os.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
