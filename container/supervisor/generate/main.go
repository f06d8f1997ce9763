// Generate builds the supervisor for every architecture that package supervisor
// embeds. It is run by hand after a change of container/supervisor/box or container/supervisor/internal/wire:
//
//	go run ./container/supervisor/generate          builds into container/supervisor/bin
//	go run ./container/supervisor/generate -check   builds, compares, and fails if they differ
//
// The same sources and toolchain give the same bytes on every machine.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// toolchain builds the binaries. It changes with go.mod's toolchain line.
const toolchain = "go1.26.8"

// maxSize keeps the program small: it is sent to every engine and held by every box.
const maxSize = 3 << 20

func main() {
	check := flag.Bool("check", false, "compare with what is there instead of writing it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := one(ctx, root, arch, check); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	return nil
}

func one(ctx context.Context, root, arch string, check bool) error {
	data, err := build(ctx, root, arch)
	if err != nil {
		return err
	}
	if len(data) > maxSize {
		return fmt.Errorf("program has %d bytes: at most %d", len(data), maxSize)
	}
	name := filepath.Join(root, "container", "supervisor", "bin", "box-linux-"+arch+".gz")
	old, err := unpack(name)
	same := err == nil && bytes.Equal(old, data)
	switch {
	case same:
		fmt.Printf("%s: %d bytes, unchanged\n", arch, len(data))
		return nil
	case check && err != nil:
		return err
	case check:
		return fmt.Errorf("%s is not built from these sources; run go run ./container/supervisor/generate", name)
	}
	packed, err := pack(data)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, %d packed\n", arch, len(data), len(packed))
	temp := name + ".tmp" // others may be building with the old one
	if err := os.WriteFile(temp, packed, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build compiles with everything that could differ between machines nailed down.
func build(ctx context.Context, root, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "slipway-generate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "box")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, "./container/supervisor/box")
	cmd.Dir = root
	cmd.Env = append(cleanEnv(), "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0",
		"GOTOOLCHAIN="+toolchain, "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, text)
	}
	return os.ReadFile(out)
}

func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		switch key, _, _ := strings.Cut(kv, "="); key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOTOOLCHAIN", "GOFLAGS", "GOEXPERIMENT", "GOFIPS140", "GOWORK":
		default:
			env = append(env, kv)
		}
	}
	return env
}

// pack compresses without time or name, so that it depends on data only.
func pack(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	zw, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = zw.Write(data)
	if err = errors.Join(err, zw.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func unpack(name string) ([]byte, error) {
	packed, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(zr)
}
