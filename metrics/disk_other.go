//go:build !linux && !darwin

package metrics

import (
	"context"
	"fmt"
	"os"
)

// DiskCheck fails when dir is not there. How much is free is not looked at on
// this system.
func DiskCheck(dir string, _ int64) Check {
	return Check{Name: "disk", Run: func(context.Context) error {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("look at the disk of %s: %w", dir, err)
		}
		return nil
	}}
}
