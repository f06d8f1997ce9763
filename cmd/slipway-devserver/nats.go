package main

import (
	"slipway/internal/devprotocol"
	"slipway/job/natsqueue/natsserver"
)

type natsServer = natsserver.Server

// startNATS runs the server until Close, and returns its address.
func startNATS(set devprotocol.NATS) (*natsServer, string, error) {
	srv, err := natsserver.Start(natsserver.Options{Dir: set.Dir, Addr: set.Addr, User: set.User, Password: set.Password})
	if err != nil {
		return nil, "", err
	}
	return srv, srv.Addr().String(), nil
}
