//go:build !linux && !darwin

package main

import (
	"context"
	"errors"

	"slipway/cmd/internal/devchild"
	"slipway/internal/devprotocol"
)

func startS3(context.Context, devprotocol.Settings) (devchild.Server, error) {
	return devchild.Server{}, errors.New("start the S3 gateway: not supported on this system")
}
