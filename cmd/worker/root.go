package main

import (
	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/exit"
)

// app is what all commands share.
type app struct{ sys cli.System }

const rootLong = `worker takes jobs from slipway's queue and runs each in a box of its own: a container that
is made for the job and destroyed after it.

Without a command it serves. Each setting has three names: --nats-url, SLIPWAY_NATS_URL, and nats: {url: …} in
the file given with --config. Flags win over variables, variables over the file. worker
config shows what is in force, and where it came from.`

const rootExample = `  worker dev                     queue, store and worker on this machine, for trying out
  worker run hello.yaml          one job from start to end, without anything around it
  worker doctor                  is all there that a worker needs?
  worker serve --config worker.yaml`

func newRoot(a *app) *cobra.Command {
	root := newServe(a)
	root.Use, root.Short = "worker", "Run slipway's jobs in boxes"
	root.Long, root.Example = rootLong+"\n\n"+exit.Help, rootExample
	root.AddCommand(newServe(a), newDev(a), newRun(a), newDoctor(a), newConfig(a))
	cli.AddVersion(root)
	return root
}
