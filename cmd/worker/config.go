package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/cmd/internal/settings"
)

// configVariable names the file in the place of --config.
const configVariable = settings.EnvPrefix + "CONFIG"

// load gives every setting its value, and checks it.
func (c *config) load(environ []string) error {
	given := "--config"
	if c.file == "" {
		c.file, _ = settings.Env(environ, configVariable)
		given = "variable " + configVariable
	}
	var file io.Reader
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return exit.Usagef("%s: %w", given, err)
		}
		defer f.Close()
		file = f
	}
	if err := c.set.Resolve(environ, c.file, file); err != nil {
		return exit.UsageError(err)
	}
	return nil
}

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show all settings in force, and where each came from", Args: cobra.NoArgs,
		Long: `config shows all settings as serve would use them, with the same flags, variables and file, and
says where each came from. Secrets are masked. With --output json it prints
[{"key":…,"value":…,"source":…,"flag":…,"env":…}].`,
		Example: "  SLIPWAY_SLOTS=4 worker config --config worker.yaml",
	}
	c := addConfig(cmd.Flags())
	output := cli.AddOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := c.load(a.sys.Environ); err != nil {
			return err
		}
		for _, v := range c.unknownEnv(a.sys.Environ) {
			fmt.Fprintln(a.sys.Err, sanitize.Line(v.String()))
		}
		return c.print(a.sys.Out, *output)
	}
	return cmd
}

func (c *config) unknownEnv(environ []string) []settings.UnknownVariable {
	return slices.DeleteFunc(c.set.UnknownEnv(environ), func(v settings.UnknownVariable) bool { return v.Name == configVariable })
}

func (c *config) print(w io.Writer, output cli.Output) error {
	type row struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Source string `json:"source"`
		Flag   string `json:"flag,omitempty"`
		Env    string `json:"env"`
	}
	var rows []row
	for _, s := range c.set.List() {
		rows = append(rows, row{s.Key, sanitize.Line(s.Display()), s.Source(), s.Flag(), s.Env()})
	}
	if output == cli.JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "SETTING\tVALUE\tSOURCE")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Key, r.Value, r.Source)
	}
	return tw.Flush()
}
