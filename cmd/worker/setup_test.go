package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"slipway/cmd/internal/cli"
	"slipway/test/devprogram"
	"slipway/test/eventually"
)

// asWorker makes the test binary the program itself, for tests that send it signals.
const asWorker = "SLIPWAY_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		if err := os.Unsetenv(asWorker); err != nil {
			panic(err)
		}
		os.Exit(cli.Main(run))
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// noEngine is where no container engine answers.
const noEngine = "DOCKER_HOST=tcp://127.0.0.1:1"

// devserverAt is the variable that tells dev and run where the built programs of the servers are.
func devserverAt(t *testing.T, programs ...string) string {
	t.Helper()
	return "SLIPWAY_DEVSERVER=" + devprogram.Folder(t, programs...)
}

// bundle is the program on a system of the test's own.
type bundle struct {
	t          *testing.T
	sys        cli.System
	out, err   *eventually.Buffer
	in         *strings.Reader
	interrupts chan struct{}
}

func setup(t *testing.T, environ ...string) *bundle {
	b := &bundle{t: t, out: &eventually.Buffer{}, err: &eventually.Buffer{}, in: strings.NewReader(""), interrupts: make(chan struct{}, 4)}
	b.sys = cli.System{Environ: environ, In: b.in, Out: b.out, Err: b.err, Interrupts: b.interrupts}
	return b
}

// run runs the program with args and returns what it printed since the last run.
func (b *bundle) run(args ...string) (stdout, stderr string, code int) {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	code = run(b.t.Context(), b.sys, args)
	return b.out.String(), b.err.String(), code
}

func (b *bundle) stdin(s string) { b.in.Reset(s) }

func needLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs boxes, which without an engine exist on Linux only")
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}
