package testimage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// engineArch returns the architecture that the engine runs, in Go's words.
func engineArch(ctx context.Context) (string, error) {
	arch, err := docker(ctx, nil, "version", "--format", "{{.Server.Arch}}")
	if err != nil {
		return "", fmt.Errorf("%w: ask the engine: %w: is Docker Engine running, and may this user use it?", ErrUnavailable, err)
	}
	return arch, nil
}

// inspect tells whether the engine has ref, and the key that it was built with;
// empty for an image that this package did not build.
func inspect(ctx context.Context, ref string) (there bool, key string, err error) {
	// A listing, unlike inspect, tells "no such image" from trouble.
	id, err := docker(ctx, nil, "images", "--quiet", "--no-trunc", ref)
	if err != nil || id == "" {
		return false, "", err
	}
	key, err = docker(ctx, nil, "image", "inspect", "--format", `{{index .Config.Labels "`+labelKey+`"}}`, id)
	return err == nil, key, err
}

// pull gets an image from its registry, or from the one that SLIPWAY_REGISTRY names, and gives it its tag.
func pull(ctx context.Context, img Image) error {
	from := img.Pull
	if registry := os.Getenv("SLIPWAY_REGISTRY"); registry != "" {
		if !strings.Contains(from, "/") {
			from = "library/" + from // the whole name of Docker Hub's own images
		}
		from = registry + "/" + from
	}
	if _, err := docker(ctx, nil, "pull", "--quiet", from); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if from == img.Ref {
		return nil
	}
	_, err := docker(ctx, nil, "tag", from, img.Ref)
	return err
}

// load gives the engine an image in the format of docker save, which write produces.
func load(ctx context.Context, write func(io.Writer) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		_ = w.CloseWithError(err) // nil is EOF; never fails
		wrote <- err
	}()
	_, err := docker(ctx, r, "load", "--quiet")
	_ = r.Close() // frees the writer if docker stopped reading; never fails
	if writeErr := <-wrote; writeErr != nil && err == nil {
		return writeErr
	}
	return err
}

// docker runs the docker command and returns what it printed, trimmed.
func docker(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return run(ctx, stdin, "", "docker", args...)
}

// run runs a program in dir; its error carries what the program complained about.
func run(ctx context.Context, stdin io.Reader, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr, cmd.Dir = stdin, &stderr, dir
	out, err := cmd.Output()
	if err != nil {
		if said := strings.TrimSpace(stderr.String()); said != "" {
			return "", fmt.Errorf("%s %s: %w: %s", name, verb(args), err, said)
		}
		return "", fmt.Errorf("%s %s: %w", name, verb(args), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// verb is the first argument that is no option: what a program was told to do.
func verb(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return args[0]
}
