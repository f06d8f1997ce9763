package devserver

import (
	"errors"
	"slices"
)

// Kill ends the servers of programs at once, as kill -9 does. Without programs: all of them.
func (s *Servers) Kill(programs ...string) error {
	var errs []error
	for _, c := range s.children {
		if len(programs) == 0 || slices.Contains(programs, c.name) {
			errs = append(errs, c.kill())
		}
	}
	return errors.Join(errs...)
}
