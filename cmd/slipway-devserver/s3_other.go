//go:build !linux && !darwin

package main

import (
	"context"
	"errors"

	"slipway/internal/devprotocol"
)

type gateway struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

func startS3(context.Context, devprotocol.S3) (*gateway, string, error) {
	return nil, "", errors.New("start the S3 gateway: not supported on this system")
}
