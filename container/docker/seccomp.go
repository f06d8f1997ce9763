package docker

import _ "embed"

// seccompProfile is the filter of every box that was not granted another: the
// profile of moby/profiles made stricter by TestSeccompProfile, which also writes
// the file (go test -run TestSeccompProfile -update). It is a file, not code, because the source
// builds on Linux only, and because it is sent to engines far older than its rules.
//
//go:embed seccomp.json
var seccompProfile string
