package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	tests := []struct{ name, events, want string }{
		{"nothing skipped", `{"Action":"run","Package":"slipway/a","Test":"T"}
{"Action":"pass","Package":"slipway/a","Test":"T"}
{"Action":"pass","Package":"slipway/a"}`, ""},
		{
			"by reason, the commonest first",
			`{"Action":"run","Package":"slipway/a","Test":"T1"}
{"Action":"output","Package":"slipway/a","Test":"T1","Output":"    a_test.go:3: a log line\n"}
{"Action":"output","Package":"slipway/a","Test":"T1","Output":"    a_test.go:4: needs root\n"}
{"Action":"output","Package":"slipway/a","Test":"T1","Output":"--- SKIP: T1 (0.00s)\n"}
{"Action":"skip","Package":"slipway/a","Test":"T1"}
{"Action":"run","Package":"slipway/b","Test":"T2"}
{"Action":"output","Package":"slipway/b","Test":"T2","Output":"=== RUN   T2\n"}
{"Action":"output","Package":"slipway/b","Test":"T2","Output":"    b_test.go:9: needs an engine: first line\n"}
{"Action":"output","Package":"slipway/b","Test":"T2","Output":"        second line\n"}
{"Action":"output","Package":"slipway/b","Test":"T2","Output":"--- SKIP: T2 (0.00s)\n"}
{"Action":"skip","Package":"slipway/b","Test":"T2"}
{"Action":"run","Package":"slipway/a","Test":"T3/x"}
{"Action":"output","Package":"slipway/a","Test":"T3/x","Output":"    c.go:1: needs an engine: first line\n"}
{"Action":"output","Package":"slipway/a","Test":"T3/x","Output":"        second line\n"}
{"Action":"output","Package":"slipway/a","Test":"T3/x","Output":"    --- SKIP: T3/x (0.00s)\n"}
{"Action":"skip","Package":"slipway/a","Test":"T3/x"}
{"Action":"run","Package":"slipway/a","Test":"T4"}
{"Action":"skip","Package":"slipway/a","Test":"T4"}
{"Action":"run","Package":"slipway/a","Test":"T5"}
{"Action":"fail","Package":"slipway/a","Test":"T5"}
{"Action":"skip","Package":"slipway/c"}`,
			"\nnot run: 4 of 5 tests\n" +
				"    2  needs an engine: first line second line  (a, b)\n" +
				"    1  needs root  (a)\n" +
				"    1  no reason given  (a)\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "events.json")
			if err := os.WriteFile(file, []byte(tt.events), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := report(file, &out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReportRefuses(t *testing.T) {
	if err := report("", &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "GOTESTSUM_JSONFILE") {
		t.Errorf("no file: got %v, want an error that names the variable", err)
	}
	file := filepath.Join(t.TempDir(), "events.json")
	if err := os.WriteFile(file, []byte("--- not JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report(file, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no JSON: got %v, want an error that names the file", err)
	}
}
