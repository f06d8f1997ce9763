//go:build !linux

package local

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"slipway/container"
)

type program struct{}

func newProgram() (*program, error) {
	return nil, fmt.Errorf("%w on %s: the supervisor is a Linux program; use Docker", container.ErrUnsupported, runtime.GOOS)
}

func (p *program) close() {}

func (p *Provider) empty(string) error { return container.ErrUnsupported }

type child struct{ conn *os.File }

func (p *Provider) start(*sandbox) (*child, error) { return nil, container.ErrUnsupported }

func (c *child) terminate() {}

func (c *child) wait(time.Duration) error { return nil }
