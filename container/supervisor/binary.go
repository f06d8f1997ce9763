package supervisor

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// Where an adapter puts the program, and what it may do.
const (
	// MountPath is the folder in the box that holds the program, read-only.
	MountPath = "/.slipway"
	// BoxPath is the program: the box's entrypoint, without arguments.
	BoxPath = MountPath + "/box"
)

// Capabilities returns what the program needs beyond nothing, in Docker's names.
func Capabilities() []string { return []string{"CHOWN", "KILL", "SETUID", "SETGID"} }

// WipeArgs makes the program, started with these arguments and nothing else, empty the folder dir, at any depth, and end:
// with 0 if nothing is left there. It is for what a box left whose own supervisor is dead.
func WipeArgs(dir string) []string { return []string{wire.WipeArg, dir} }

// WipeCapabilities returns what the program needs, as root, to remove what users of any number have made.
func WipeCapabilities() []string { return []string{"DAC_OVERRIDE", "FOWNER"} }

//go:embed bin
var bin embed.FS

type program struct {
	data   []byte
	digest string
	err    error
}

var binaries = map[string]func() program{
	"amd64": sync.OnceValue(func() program { return load("amd64") }),
	"arm64": sync.OnceValue(func() program { return load("arm64") }),
}

// Binary returns the program for Linux on goarch (amd64 or arm64), unpacked. The
// slice is shared: don't change it. ErrUnsupported for any other architecture.
func Binary(goarch string) ([]byte, error) {
	b := lookup(goarch)
	return b.data, b.err
}

// Digest returns the SHA-256 of Binary in hexadecimal: the name of this build.
func Digest(goarch string) (string, error) {
	b := lookup(goarch)
	return b.digest, b.err
}

func lookup(goarch string) program {
	if get, ok := binaries[goarch]; ok {
		return get()
	}
	return program{err: fmt.Errorf("find supervisor for architecture %q: %w", goarch, container.ErrUnsupported)}
}

func load(goarch string) program {
	packed, err := bin.ReadFile("bin/box-linux-" + goarch + ".gz")
	if err != nil {
		return program{err: fmt.Errorf("find embedded supervisor: %w", err)}
	}
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return program{err: fmt.Errorf("unpack supervisor for %s: %w", goarch, err)}
	}
	data, err := io.ReadAll(zr)
	if err != nil {
		return program{err: fmt.Errorf("unpack supervisor for %s: %w", goarch, err)}
	}
	sum := sha256.Sum256(data)
	return program{data: data, digest: hex.EncodeToString(sum[:])}
}
