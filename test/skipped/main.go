// Command skipped says which tests of a run were skipped, one line for each reason:
//
//	not run: 71 of 1650 tests
//	   64  needs Docker Engine: docker version: …  (container/docker, test/image)
//	    7  needs root to become another user  (container/local)
//
// gotestsum starts it after the last test, and gives it the run's JSON by GOTESTSUM_JSONFILE.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := report(os.Getenv("GOTESTSUM_JSONFILE"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

func report(file string, w io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read the run's events: %w: set GOTESTSUM_JSONFILE", err)
	}
	defer f.Close()
	ran, reasons, err := read(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return write(w, ran, reasons)
}

// event is one of `go test -json`.
type event struct{ Action, Package, Test, Output string }

// reason is why tests were skipped.
type reason struct {
	text     string
	tests    int
	packages map[string]bool
}

// read returns the number of tests that ended, and the reasons of those that were skipped, the commonest first.
func read(r io.Reader) (ended int, reasons []*reason, err error) {
	output := map[[2]string]*strings.Builder{}
	byText := map[string]*reason{}
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return 0, nil, err
		}
		test := [2]string{e.Package, e.Test}
		switch {
		case e.Test == "":
		case e.Action == "run":
			output[test] = &strings.Builder{}
		case e.Action == "output" && output[test] != nil:
			output[test].WriteString(e.Output)
		case e.Action == "skip" && output[test] != nil:
			text := why(output[test].String())
			if byText[text] == nil {
				byText[text] = &reason{text: text, packages: map[string]bool{}}
			}
			byText[text].tests++
			byText[text].packages[strings.TrimPrefix(e.Package, "slipway/")] = true
			fallthrough
		case e.Action == "pass" || e.Action == "fail":
			ended++
			delete(output, test)
		}
	}
	reasons = slices.SortedFunc(maps.Values(byText), func(a, b *reason) int {
		return cmp.Or(cmp.Compare(b.tests, a.tests), strings.Compare(a.text, b.text))
	})
	return ended, reasons, nil
}

// place is what package testing puts before a message.
var place = regexp.MustCompile(`(?m)^ +[\w.-]+\.go:\d+: `)

// why finds the message of t.Skip in what a test printed: the last one with a place before it. Its further lines are indented.
func why(output string) string {
	all := place.FindAllStringIndex(output, -1)
	if len(all) == 0 {
		return "no reason given"
	}
	var lines []string
	for line := range strings.Lines(output[all[len(all)-1][1]:]) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--- SKIP") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

func write(w io.Writer, ended int, reasons []*reason) error {
	if len(reasons) == 0 {
		return nil
	}
	skipped := 0
	for _, r := range reasons {
		skipped += r.tests
	}
	if _, err := fmt.Fprintf(w, "\nnot run: %d of %d tests\n", skipped, ended); err != nil {
		return err
	}
	for _, r := range reasons {
		packages := strings.Join(slices.Sorted(maps.Keys(r.packages)), ", ")
		if _, err := fmt.Fprintf(w, "%5d  %s  (%s)\n", r.tests, r.text, packages); err != nil {
			return err
		}
	}
	return nil
}
