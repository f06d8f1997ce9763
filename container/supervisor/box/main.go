//go:build linux

package main

import (
	"os"
	"runtime"
	"time"

	"slipway/container/supervisor/box/internal/step"
	"slipway/container/supervisor/box/internal/workspace"
	"slipway/container/supervisor/internal/wire"
)

// main runs the box. With one of step's arguments, which only the box itself uses, it runs a step process; with
// wire.WipeArg and a folder it empties what a box left there.
func main() {
	runtime.GOMAXPROCS(2)
	if len(os.Args) == 2 && (os.Args[1] == step.Arg || os.Args[1] == step.ArgAlone) {
		os.Exit(runStep(os.Args[1] == step.ArgAlone))
	}
	if len(os.Args) == 3 && os.Args[1] == wire.WipeArg {
		os.Exit(runWipe(os.Args[2]))
	}
	os.Exit(runBox(term()))
}

func runWipe(dir string) int {
	if _, err := workspace.Empty(dir, time.Now().Add(wipeTime)); err != nil {
		complain("wipe "+dir, err)
		return 1
	}
	return 0
}

func runStep(alone bool) int {
	if err := step.Run(alone); err != nil {
		complain("step", err)
		return 1
	}
	return 0
}

// complain writes a line to stderr, which an adapter logs.
func complain(text string, err error) {
	if err != nil {
		text += ": " + err.Error()
	}
	_, _ = os.Stderr.WriteString("slipway box: " + text + "\n")
}
