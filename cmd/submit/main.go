// Command submit is the producer's and the reader's side of slipway: it puts jobs
// into the queue, follows them, and shows what came of them.
package main

import (
	"context"
	"os"

	"slipway/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(run)) }

// run is the program, on a system of the caller's choice. It returns the exit code.
func run(ctx context.Context, sys cli.System, args []string) int {
	return cli.Execute(ctx, sys, newRoot(&app{sys: sys, connect: connectNATS}), args) //nolint:contextcheck // the commands take theirs from cobra
}
