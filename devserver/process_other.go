//go:build !linux && !darwin

package devserver

import (
	"errors"
	"os/exec"
)

func (c *child) run(*exec.Cmd) error {
	return errors.New("not supported on this system: run a NATS server and an S3 service of your own, and give their addresses")
}
