//go:build !linux && !darwin

package metrics

import (
	"context"
	"fmt"
	"os"
)

// DiskCheck fails when dir does not exist. On this system it does not look how much
// space is free.
func DiskCheck(dir string, _ int64) Check {
	return Check{Name: "disk", Run: func(context.Context) error {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("look at the disk of %s: %w", dir, err)
		}
		return nil
	}}
}
