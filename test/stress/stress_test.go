package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"slipway/test/eventually"
)

func TestReadEvents(t *testing.T) {
	sum, err := readEvents(strings.NewReader(`
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/sub","Output":"got 1\n"}
{"Action":"fail","Package":"p","Test":"TestB/sub"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"output","Package":"r","Output":"panic: out of time\n"}
{"Action":"fail","Package":"r"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []failure{{"p TestB/sub", "    got 1\n"}, {"q", "    q.go:1: undefined: x\n"}, {"r", "    panic: out of time\n"}}
	if sum.tests != 2 || len(sum.failed) != len(want) {
		t.Fatalf("got %+v, want 2 tests and %+v", sum, want)
	}
	for i := range want {
		if sum.failed[i] != want[i] {
			t.Errorf("got %+v, want %+v", sum.failed[i], want[i])
		}
	}
	if _, err := readEvents(strings.NewReader("FAIL\n")); err == nil {
		t.Error("got no error for what is no JSON")
	}
}

// module makes a module with one test and enters it.
func module(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module x\n\ngo 1.26\n",
		"x_test.go": "package x\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nvar _ = time.Second\n\nfunc TestX(t *testing.T) {" + body + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestRounds: each round is told, and failures of all rounds are summed.
func TestRounds(t *testing.T) {
	for body, want := range map[string]string{
		"":                    `(?s)round 1: .*, 1 tests, 0 failures\nround 2: .*2 rounds of 2 beside 1 burners in .*: 0 failures\n$`,
		`t.Error("too late")`: `(?s)round 1: .*1 failures\n  x TestX\n.*too late.*round 2: .*: 2 failures\n$`,
	} {
		module(t, body)
		var out strings.Builder
		failures, err := run(t.Context(), 2, 1, []string{"."}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(out.String()) || (failures == 0) != (body == "") {
			t.Errorf("got %d failures and\n%s\nwant a match of %s", failures, out.String(), want)
		}
	}
}

// TestCanceled: when the context ends, the tests and the burners do, and the sum is still told.
func TestCanceled(t *testing.T) {
	module(t, "time.Sleep(time.Hour)")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out strings.Builder
	began := time.Now()
	_, err := run(ctx, 2, 2, []string{"."}, &out)
	if err == nil || time.Since(began) > time.Minute {
		t.Errorf("got error %v after %v, want the context's end at once", err, time.Since(began))
	}
	if !strings.Contains(out.String(), "0 rounds of 2") {
		t.Errorf("got %q, want a sum of no rounds", out.String())
	}
}

// TestBurn: burners use the processor, and stop.
func TestBurn(t *testing.T) {
	stop := burn(2)
	eventually.True(t, eventually.Patience, "there are two burners", func() bool { return burners() == 2 })
	stop()
	eventually.True(t, eventually.Patience, "the burners have ended", func() bool { return burners() == 0 })
}

// burners counts the goroutines of burn. Those of earlier tests may still be ending.
func burners() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".burn.func1")
}
