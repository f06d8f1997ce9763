package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// tally is what one run of the tests came to.
type tally struct {
	tests  int // top-level ones that ran to an end
	failed []failure
}

// failure is a test, or a package whose failure is no test's.
type failure struct{ name, output string }

// event is one line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// readEvents reads the output of go test -json to its end. A test whose subtest failed counts once, as the subtest.
func readEvents(r io.Reader) (tally, error) {
	var sum tally
	output := map[string]*strings.Builder{}
	var failed []string
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return sum, fmt.Errorf("read the output of go test: %w", err)
		}
		name := strings.TrimSpace(e.Package + e.ImportPath + " " + e.Test)
		switch e.Action {
		case "output", "build-output":
			if output[name] == nil {
				output[name] = &strings.Builder{}
			}
			output[name].WriteString("    " + e.Output)
		case "fail", "build-fail":
			if !slices.ContainsFunc(failed, func(f string) bool { return strings.HasPrefix(f, name+"/") || strings.HasPrefix(f, name+" ") }) {
				failed = append(failed, name)
			}
		}
		if e.Test != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
			sum.tests++
		}
		if e.Action == "pass" {
			delete(output, name) // gigabytes in ten rounds otherwise
		}
	}
	for _, name := range failed {
		f := failure{name: name}
		if b := output[name]; b != nil {
			f.output = b.String()
		}
		sum.failed = append(sum.failed, f)
	}
	return sum, nil
}
