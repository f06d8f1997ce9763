//go:build !linux && !darwin

package s3gateway

import (
	"errors"
	"os/exec"
)

func (g *Gateway) run(*exec.Cmd) error {
	return errors.New("not supported on this system: give the endpoint of an S3 server instead")
}

// Main does nothing here: Start never makes this program the server.
func Main() {}
