// Command worker takes jobs from the queue and runs each in a box of its own.
package main

import (
	"context"
	"os"

	"slipway/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(run))
}

// run is the program, on a system of the caller's choice. It returns the exit code.
func run(ctx context.Context, sys cli.System, args []string) int {
	return cli.Execute(ctx, sys, newRoot(&app{sys: sys}), args) //nolint:contextcheck // the commands take theirs from cobra
}
