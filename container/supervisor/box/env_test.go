//go:build linux

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMergeEnv(t *testing.T) {
	base := []string{"A=1", "B=2"}
	got := mergeEnv(base, []string{"B=x", "C=3", "C=4"})
	if want := []string{"A=1", "B=x", "C=4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if base[1] != "B=2" {
		t.Error("the base was changed")
	}
}

func TestBaseEnv(t *testing.T) {
	t.Setenv("HOME", "/root")
	t.Setenv("FROM_IMAGE", "yes")
	t.Setenv("PATH", "/image/bin")
	t.Setenv("CI", "")
	if err := os.Unsetenv("CI"); err != nil { // Setenv restores it at the end
		t.Fatal(err)
	}
	for _, key := range []string{"PWD", "OLDPWD", "SHLVL", "TERM", "GOMAXPROCS"} { // those of the box's process
		t.Setenv(key, "box")
	}
	env := baseEnv("/tmp", []string{"OWN=1"})
	for _, key := range []string{"PWD", "OLDPWD", "SHLVL", "TERM", "GOMAXPROCS"} {
		if got := valueOf(env, key); got != "" {
			t.Errorf("%s = %q, want it left out", key, got)
		}
	}
	for key, want := range map[string]string{"HOME": "/tmp", "FROM_IMAGE": "yes", "PATH": "/image/bin", "OWN": "1", "CI": "true"} {
		if got := valueOf(env, key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
}

func valueOf(env []string, key string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}
