// Command seed prints a job that fills a workspace with the source of a Go module:
//
//	go run ./examples/coding-task/seed | submit run -
//	go run ./examples/coding-task/seed -workspace acme/errors github.com/pkg/errors@v0.9.1 | submit run -
//
// The module comes through the Go module proxy, by the go command. Its files are
// the inputs of the job, so it has to be a small one: a job holds 1 MiB.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slipway/job"
)

func main() {
	workspace := flag.String("workspace", "examples/uuid", "the workspace to fill")
	image := flag.String("image", "golang:1.26", "an image with a shell")
	flag.Parse()
	module := "github.com/google/uuid@v1.6.0"
	if flag.NArg() > 0 {
		module = flag.Arg(0)
	}
	if err := run(context.Background(), module, *workspace, *image); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, module, workspace, image string) error {
	dir, err := download(ctx, module)
	if err != nil {
		return err
	}
	inputs, err := files(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", module, err)
	}
	j := &job.Job{
		Name:      "seed " + module,
		Image:     image,
		Workspace: &job.Workspace{Prefix: workspace, Pull: job.WorkspacePullNever, Push: job.WorkspacePushAlways},
		Inputs:    inputs,
		Steps:     []job.Step{{Name: "list", List: "."}},
	}
	data, err := job.Encode(j)
	if err != nil {
		return fmt.Errorf("make a job of %s: %w", module, err)
	}
	_, err = fmt.Println(string(data))
	return err
}

// download returns the folder of the module's files.
func download(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return "", fmt.Errorf("download %s: %s", module, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	return answer.Dir, nil
}

// files makes every regular file below dir an input.
func files(dir string) ([]job.Input, error) {
	var inputs []job.Input
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		in := job.Input{Path: name, ContentBase64: data}
		if len(data) == 0 {
			in.Content, in.ContentBase64 = new(string), nil
		}
		inputs = append(inputs, in)
		return nil
	})
	return inputs, err
}
