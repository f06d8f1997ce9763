//go:build !linux

package local_test

import (
	"errors"
	"testing"

	"slipway/container"
	"slipway/container/local"
)

func TestUnsupported(t *testing.T) {
	if _, err := local.New(local.Config{AllowLocal: true}); !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("New = %v, want ErrUnsupported", err)
	}
}
