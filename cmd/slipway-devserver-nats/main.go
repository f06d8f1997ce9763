// Command slipway-devserver-nats is the NATS server of worker dev, of worker run and of tests. Package slipway/devserver
// starts it and documents what it does; it is not for use by hand.
//
// It is a program of its own: a production worker must not link a server. It is no module of its own, as the S3 gateway is:
// the library's go.mod has nats-server anyway, for natsserver and the tests.
package main

import (
	"context"
	"os"

	"slipway/cmd/internal/devchild"
	"slipway/internal/devprotocol"
	"slipway/job/natsqueue/natsserver"
)

func main() {
	program := devchild.Program{
		Name:  devprotocol.NATSProgram,
		About: "The NATS server of worker dev and worker run, for development.",
		Start: start,
	}
	os.Exit(program.Main(os.Args))
}

func start(_ context.Context, set devprotocol.Settings) (devchild.Server, error) {
	srv, err := natsserver.Start(natsserver.Options{Dir: set.Dir, Addr: set.Addr, User: set.User, Password: set.Password})
	if err != nil {
		return devchild.Server{}, err
	}
	return devchild.Server{Addr: srv.Addr().String(), Close: srv.Close}, nil
}
