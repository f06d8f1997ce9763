package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

// report is one line of validate -o json.
type report struct {
	File   string    `json:"file"`
	Valid  bool      `json:"valid"`
	Errors []mistake `json:"errors,omitempty"`
}

type mistake struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func newValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "validate FILE…", Short: "Check job files", Args: cli.SomeArgs("FILE"),
		Long: `validate checks job files and names line, column and field of every mistake. It asks neither the
queue nor a worker: whether a worker's policy allows what the job asks for is decided there.
Exit code 2 if a file is not valid. With --output json every line is
{"file":…,"valid":…,"errors":[{"line":…,"column":…,"path":…,"message":…}]}.
docs/job.md explains every field.`,
		Example: "  submit validate jobs/*.yaml",
	}
	output := cli.AddOutput(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		bad := false
		for _, file := range args {
			j, err := a.sys.ReadJob(file)
			bad = bad || err != nil
			if err := a.printReport(file, j, err, *output); err != nil {
				return err
			}
		}
		if bad {
			return exit.Silent(exit.Usage)
		}
		return nil
	}
	return cmd
}

func (a *app) printReport(file string, j *job.Job, err error, output cli.Output) error {
	var many job.Errors
	switch {
	case output == cli.JSON:
		v := report{File: file, Valid: err == nil}
		if errors.As(err, &many) {
			for _, e := range many {
				v.Errors = append(v.Errors, mistake{e.Line, e.Column, e.Path, e.Message})
			}
		} else if err != nil {
			v.Errors = []mistake{{Message: err.Error()}}
		}
		return json.NewEncoder(a.sys.Out).Encode(v)
	case errors.As(err, &many):
		for _, e := range many {
			fmt.Fprintln(a.sys.Out, sanitize.Line(e.In(file)))
		}
	case err != nil:
		fmt.Fprintln(a.sys.Out, sanitize.Line(err.Error()))
	default:
		fmt.Fprintf(a.sys.Out, "%s: valid, %s\n", file, display.Count(len(j.Steps), "step"))
	}
	return nil
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a job file", Args: cobra.NoArgs,
		Long: `schema prints the JSON Schema of a job file, for editors. With the YAML language server put this
as the first line of a job:  # yaml-language-server: $schema=job.schema.json`,
		Example: "  submit schema > job.schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(job.Schema())
			return err
		},
	}
}
