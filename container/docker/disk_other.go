//go:build !linux && !darwin

package docker

// roomOf does not know it on this system.
func roomOf(string) (have room, ok bool) { return room{}, false }
