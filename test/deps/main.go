// Command deps says what slipway costs those who build, download or import it, and fails when it costs more than a bound:
//
//	PROGRAM             SIZE    BOUND   MODULES  BOUND  DIRECT  INDIRECT
//	worker              30.7 MB 40 MB   58       61     22      36
//
//	GO.MOD                                LINES  BOUND
//	slipway                               88     100
//	a program that imports the library    52     60
//
// It looks at the programs that make build built. A module counts for a program if the program links a package of
// it; it is direct if the go.mod of the program's module requires it without the comment "// indirect".
//
// The last line is the go.mod of a new module with a program that imports runner and the three production adapters,
// after go mod tidy: what an embedder gets into the choice of versions. Run: make deps
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

// program is a program of bin, the folder of its module, and the most that it may cost.
type program struct {
	name, module      string
	megabytes, linked int
}

// programs have room of about a fifth. submit has the S3 client, by which logs reads what the queue no longer keeps. Six modules
// of both, 2.7 MB, are the AWS SDK's chain of credentials: without it no role of a machine or a cluster could be used. The two servers are for development: they are counted so that a jump is seen.
var programs = []program{
	{"worker", ".", 40, 61},
	{"submit", ".", 23, 31},
	{"slipway-devserver-nats", ".", 21, 14},
	{"slipway-devserver-s3", "cmd/slipway-devserver-s3", 27, 75},
}

// The most lines that a go.mod may have.
const (
	mostLines         = 100
	mostEmbedderLines = 60
)

func main() {
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "PROGRAM\tSIZE\tBOUND\tMODULES\tBOUND\tDIRECT\tINDIRECT")
	var errs []error
	for _, p := range programs {
		errs = append(errs, p.report(w, root))
	}
	fmt.Fprintln(w, "\nGO.MOD\tLINES\tBOUND")
	lines, err := countLines(filepath.Join(root, "go.mod"))
	errs = append(errs, err, reportLines(w, "slipway", lines, mostLines))
	if lines, err = embedderLines(root); err == nil {
		err = reportLines(w, "a program that imports the library", lines, mostEmbedderLines)
	}
	return errors.Join(append(errs, err, w.Flush())...)
}

func (p program) report(w io.Writer, root string) error {
	path := filepath.Join(root, "bin", p.name)
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%w: run make build first", err)
	}
	build, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	required, err := directModules(filepath.Join(root, p.module))
	if err != nil {
		return err
	}
	direct := 0
	for _, m := range build.Deps {
		if required[m.Path] {
			direct++
		}
	}
	linked := len(build.Deps)
	fmt.Fprintf(w, "%s\t%.1f MB\t%d MB\t%d\t%d\t%d\t%d\n", p.name, float64(info.Size())/1e6, p.megabytes, linked, p.linked, direct, linked-direct)
	return errors.Join(
		within(p.name+": bytes", info.Size(), int64(p.megabytes)*1e6),
		within(p.name+": modules", int64(linked), int64(p.linked)),
	)
}

func reportLines(w io.Writer, what string, lines, most int) error {
	fmt.Fprintf(w, "%s\t%d\t%d\n", what, lines, most)
	return within("go.mod of "+what+": lines", int64(lines), int64(most))
}

func within(what string, got, most int64) error {
	if got > most {
		return fmt.Errorf("%s: %d is over the bound of %d: find out what brought it in (go mod why -m, go version -m), or raise the bound in test/deps and say why", what, got, most)
	}
	return nil
}

// directModules returns the modules that the go.mod in dir requires itself.
func directModules(dir string) (map[string]bool, error) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read %s/go.mod: %w", dir, err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, fmt.Errorf("read %s/go.mod: %w", dir, err)
	}
	direct := map[string]bool{}
	for _, r := range file.Require {
		direct[r.Path] = !r.Indirect
	}
	return direct, nil
}
