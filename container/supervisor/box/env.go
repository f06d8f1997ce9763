//go:build linux

package main

import (
	"os"
	"strings"
)

// defaultPath is where programs are looked for if neither the image nor the job says.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// baseEnv is what every command gets: defaults, then what the image says, then the settings. The image's
// HOME is root's, and not for the steps' user.
func baseEnv(home string, settings []string) []string {
	env := []string{"PATH=" + defaultPath, "LANG=C.UTF-8", "CI=true"}
	var image []string
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		switch key {
		case "HOME", "PWD", "OLDPWD", "SHLVL", "TERM", "_", "GOMAXPROCS":
		default:
			image = append(image, kv)
		}
	}
	env = mergeEnv(env, image)
	env = mergeEnv(env, []string{"HOME=" + home})
	return mergeEnv(env, settings)
}

// mergeEnv returns base with the variables of over put over it. Neither is changed.
func mergeEnv(base, over []string) []string {
	env := make([]string, len(base), len(base)+len(over))
	copy(env, base)
	at := make(map[string]int, len(env))
	for i, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		at[key] = i
	}
	for _, kv := range over {
		key, _, _ := strings.Cut(kv, "=")
		if i, ok := at[key]; ok {
			env[i] = kv
			continue
		}
		at[key] = len(env)
		env = append(env, kv)
	}
	return env
}
