package seeds

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/seeds.md"
)

// rowsOf is how many rows each document has.
var rowsOf = []int{31, 22, 33, 17, 19}

// states in the order of the counts at the top.
var states = []string{"works", "partly", "missing", "can't be had"}

// row is one line of a document's table.
type row struct{ id, asks, state, where, since, missing string }

func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tree := readTree(t)
	changelog, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems(string(text), string(changelog), tree) {
		t.Error(p)
	}
}

// problems returns what is wrong with the page.
func problems(text, changelog string, tree tree) []string {
	rows, out := parse(text)
	seen := map[string]int{}
	for _, r := range rows {
		seen[r.id]++
		for _, p := range r.check(changelog, tree) {
			out = append(out, r.id+": "+p)
		}
	}
	for document, n := range rowsOf {
		for i := range n {
			id := fmt.Sprintf("S%d.%d", document, i+1)
			if seen[id] != 1 {
				out = append(out, fmt.Sprintf("%s is there %d times, want once", id, seen[id]))
			}
			delete(seen, id)
		}
	}
	for id := range seen {
		out = append(out, id+": there is no such row")
	}
	return append(out, checkCounts(text, rows)...)
}

var (
	line      = regexp.MustCompile(`(?m)^\| *(S\d\.\d+) *\|(.*)\|$`)
	countLine = regexp.MustCompile(`(?m)^\| (\d|all)[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	quoted    = regexp.MustCompile("`([^`]+)`")
	testName  = regexp.MustCompile(`^((?:Test|Fuzz|Example)\w*)(?:/(.+))?$`)
)

func parse(text string) (rows []row, out []string) {
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		cells := strings.Split(m[2], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 {
			out = append(out, fmt.Sprintf("%s has %d cells, want 6", m[1], len(cells)+1))
			continue
		}
		rows = append(rows, row{m[1], cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	return rows, out
}

// none stands in a cell that has nothing to say.
const none = "–"

// check returns what is wrong with r.
func (r row) check(changelog string, tree tree) (out []string) {
	if r.asks == "" || r.asks == none {
		out = append(out, "it does not say what is asked for")
	}
	built := r.state == "works" || r.state == "partly"
	switch {
	case !slices.Contains(states, r.state):
		out = append(out, fmt.Sprintf("state %q, want one of %q", r.state, states))
	case built != (r.where != none):
		out = append(out, fmt.Sprintf("%s, and works in %q", r.state, r.where))
	case built != (r.since != none):
		out = append(out, fmt.Sprintf("%s, since %q", r.state, r.since))
	case (r.state == "works") != (r.missing == none):
		out = append(out, fmt.Sprintf("%s, and %q is missing", r.state, r.missing))
	}
	if built && !strings.Contains(changelog, "\n## "+r.since+"\n") && !strings.Contains(changelog, "\n## ["+r.since+"]") {
		out = append(out, fmt.Sprintf("since %q: CHANGELOG.md has no such version", r.since))
	}
	if built {
		out = append(out, r.checkWhere(tree)...)
	}
	return out
}

// checkWhere wants packages that exist, and tests that lie in them.
func (r row) checkWhere(tree tree) (out []string) {
	var folders, tests []string
	for _, m := range quoted.FindAllStringSubmatch(r.where, -1) {
		if testName.MatchString(m[1]) {
			tests = append(tests, m[1])
		} else {
			folders = append(folders, m[1])
		}
	}
	if len(folders) == 0 || len(tests) == 0 {
		out = append(out, fmt.Sprintf("%q names %d packages and %d tests, want at least one of each", r.where, len(folders), len(tests)))
	}
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			out = append(out, fmt.Sprintf("%s is not in the tree", f))
		}
	}
	for _, name := range tests {
		m := testName.FindStringSubmatch(name)
		in := tree.tests[m[1]]
		if !slices.ContainsFunc(in, func(dir string) bool { return below(dir, folders) }) {
			out = append(out, fmt.Sprintf("%s is in none of %q, but in %q", m[1], folders, in))
		}
		if m[2] != "" && !tree.cases[m[2]] {
			out = append(out, fmt.Sprintf("%s: no suite has the case %q", m[1], m[2]))
		}
	}
	return out
}

// below reports whether dir is one of the folders, or lies in one.
func below(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

// checkCounts compares the table at the top with the rows.
func checkCounts(text string, rows []row) (out []string) {
	want := map[string][]int{}
	for _, r := range rows {
		for _, of := range []string{r.id[1:2], "all"} {
			if want[of] == nil {
				want[of] = make([]int, len(states)+1)
			}
			if i := slices.Index(states, r.state); i >= 0 {
				want[of][i]++
			}
			want[of][len(states)]++
		}
	}
	found := 0
	for _, m := range countLine.FindAllStringSubmatch(text, -1) {
		var got []int
		for _, cell := range m[2:] {
			n, _ := strconv.Atoi(cell) // the pattern has digits
			got = append(got, n)
		}
		found++
		if !slices.Equal(got, want[m[1]]) {
			out = append(out, fmt.Sprintf("the counts of %s are %d, want %d", m[1], got, want[m[1]]))
		}
	}
	if found != len(rowsOf)+1 {
		out = append(out, fmt.Sprintf("%d lines of counts, want one for each document and one for all", found))
	}
	return out
}

// tree is what the Go files hold.
type tree struct {
	tests map[string][]string // the folders in which a test function of that name is
	cases map[string]bool     // strings in files that run subtests
}

func readTree(t *testing.T) tree {
	t.Helper()
	out := tree{tests: map[string][]string{}, cases: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		return out.add(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (t tree) add(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, "_test.go") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				t.tests[f.Name.Name] = append(t.tests[f.Name.Name], filepath.ToSlash(dir))
			}
		}
	}
	if strings.HasSuffix(dir, "test") { // a suite
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					t.cases[s] = true
				}
			}
			return true
		})
	}
	return nil
}

// TestProblems proves that TestPage can fail: each change of the page is found.
func TestProblems(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, tree := string(data), readTree(t)
	const changelog = "\n## Unreleased\n"
	for _, tt := range []struct{ name, old, new, want string }{
		{"a row is gone", "| S3.4 |", "| 3.4 |", "S3.4 is there 0 times"},
		{"a row twice", "| S3.4 |", "| S3.5 |", "S3.5 is there 2 times"},
		{"a row of no document", "| S3.4 |", "| S3.40 |", "S3.40: there is no such row"},
		{"a package that moved", "`container/docker`: the engine's", "`container/moby`: the engine's", "S0.10: container/moby is not in the tree"},
		{"a test that was renamed", "`TestSeedState`", "`TestSeed`", "S2.1: TestSeed is in none of"},
		{"a test of another package", "`TestSeedState`", "`TestReaper`", "S2.1: TestReaper is in none of"},
		{"a case that was renamed", "`TestConformance/stop`", "`TestConformance/halt`", `no suite has the case "halt"`},
		{"a state changes", "| S3.4 | Run a text through the shell | works |", "| S3.4 | Run a text through the shell | partly |", "S3.4: partly, and \"–\" is missing"},
		{"an unknown state", "| S3.4 | Run a text through the shell | works |", "| S3.4 | Run a text through the shell | done |", "S3.4: state \"done\""},
		{"a version that does not exist", "`TestSeedState`, `TestRoundTrip` | Unreleased |", "`TestSeedState`, `TestRoundTrip` | 0.9 |", "no such version"},
	} {
		changed := strings.Replace(text, tt.old, tt.new, 1)
		if changed == text {
			t.Errorf("%s: the page has no %s", tt.name, tt.old)
			continue
		}
		if got := strings.Join(problems(changed, changelog, tree), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	wrong := countLine.ReplaceAllString(text, "| $1 | $2 | $3 | $4 | $5 | 9 |")
	if got := strings.Join(problems(wrong, changelog, tree), "\n"); !strings.Contains(got, "the counts of all are") {
		t.Errorf("wrong counts: got %q", got)
	}
}
