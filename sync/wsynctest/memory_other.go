//go:build !linux

package wsynctest

func inMemory(string) bool { return false }
