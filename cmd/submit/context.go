package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/contexts"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/cmd/internal/settings"
)

const contextLong = `context remembers where queues are, as nats context does. A context is a file with settings, as a
worker's config file has them: those of nats, the queue for jobs that name none, and those of s3,
by which logs reads the store. The one in use counts for all commands; --context NAME or
SLIPWAY_CONTEXT names another one for once. Flags and variables win over what a context says.

The files lie in ~/.config/slipway/context, readable by you alone, and may be edited.`

func newContext(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Remember where queues are: add, use, list, show, remove", Args: cobra.NoArgs, Long: contextLong,
		Example: `  submit context add prod --nats-url tls://nats.example.com:4222 --nats-creds prod.creds --queue builds
  submit context add staging --from-nats staging    # what the nats command knows
  submit context use prod`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	use := a.contextCommand("use NAME", "Use a context from now on", func(s contexts.Store, name string) error {
		if err := s.Use(name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.sys.Out, "%s is in use\n", name)
		return err
	})
	remove := a.contextCommand("remove NAME", "Forget a context", contexts.Store.Remove)
	cmd.AddCommand(a.contextAdd(), use, a.contextList(), a.contextShow(), remove)
	return cmd
}

// contextCommand is a command that does one thing to one context.
func (a *app) contextCommand(use, short string, do func(contexts.Store, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cli.OneArg("NAME"), ValidArgsFunction: completion{a}.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := contexts.Open(a.sys.Environ)
			if err == nil {
				err = do(s, args[0])
			}
			return usage(err)
		},
	}
}

func (a *app) contextAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Remember the settings that are given as flags", Args: cli.OneArg("NAME"),
		Long: `add writes a context with the settings that are given as flags, and, with --from-nats, with those of a
context of the nats command. The first context is in use at once. Keys of the store have no flags:
write them into the file, which add names.`,
	}
	set := settings.New(cmd.Flags())
	contexts.Register(set)
	fromNATS := cmd.Flags().String("from-nats", "", "begin with the settings of this `context` of the nats command")
	replace := cmd.Flags().Bool("replace", false, "replace a context of the same name")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return usage(a.addContext(args[0], *fromNATS, *replace, a.set, set))
	}
	return cmd
}

// usage is exit.UsageError, and nil for nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return exit.UsageError(err)
}

func (a *app) addContext(name, fromNATS string, replace bool, sets ...*settings.Set) error {
	s, err := contexts.Open(a.sys.Environ)
	if err != nil {
		return err
	}
	values := map[string]string{}
	if fromNATS != "" {
		if values, err = s.FromNATS(fromNATS); err != nil {
			return err
		}
	}
	given, err := givenAsFlags(sets)
	if err != nil {
		return err
	}
	maps.Copy(values, given)
	if len(values) == 0 {
		return errors.New("nothing to remember: give at least --nats-url, or --from-nats")
	}
	if err := s.Save(name, values, replace); err != nil {
		return err
	}
	current, err := s.Current()
	if err != nil {
		return err
	}
	remark := ""
	if current == "" {
		remark = ", and is in use"
		err = s.Use(name)
	}
	fmt.Fprintf(a.sys.Out, "%s is %s%s\n", name, s.Path(name), remark)
	return err
}

// givenAsFlags are the values on the command line. Files get their whole path: a context is used in any folder.
func givenAsFlags(sets []*settings.Set) (map[string]string, error) {
	files := []string{"nats.creds", "nats.nkey", "nats.tls_ca", "nats.tls_cert", "nats.tls_key"}
	values := map[string]string{}
	for _, set := range sets {
		if err := set.Resolve(nil, "", nil); err != nil {
			return nil, err
		}
		for _, st := range set.List() {
			if st.Source() != settings.FromFlag {
				continue
			}
			values[st.Key] = st.Value()
			if slices.Contains(files, st.Key) && st.Value() != "" {
				path, err := filepath.Abs(st.Value())
				if err != nil {
					return nil, err
				}
				values[st.Key] = path
			}
		}
	}
	return values, nil
}

// contextRow is a context in a list.
type contextRow struct {
	Name  string `json:"name"`
	InUse bool   `json:"in_use"`
	URL   string `json:"url,omitempty"`
	Error string `json:"error,omitempty"`
}

func (a *app) contextList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the contexts", Args: cobra.NoArgs}
	output := cli.AddOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		rows, err := a.contextRows()
		if err != nil {
			return exit.UsageError(err)
		}
		tw := tabwriter.NewWriter(a.sys.Out, 0, 4, 2, ' ', 0)
		if *output == cli.Text && len(rows) > 0 {
			fmt.Fprintln(tw, "\tNAME\tURL")
		}
		for _, r := range rows {
			if *output == cli.JSON {
				if err := json.NewEncoder(a.sys.Out).Encode(r); err != nil {
					return err
				}
				continue
			}
			mark := ""
			if r.InUse {
				mark = "*"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\n", mark, r.Name, sanitize.Line(r.URL+r.Error))
		}
		return tw.Flush()
	}
	return cmd
}

func (a *app) contextRows() ([]contextRow, error) {
	s, err := contexts.Open(a.sys.Environ)
	if err != nil {
		return nil, err
	}
	names, err := s.Names()
	if err != nil {
		return nil, err
	}
	current, err := s.Current()
	if err != nil {
		return nil, err
	}
	var rows []contextRow
	for _, name := range names {
		r := contextRow{Name: name, InUse: name == current}
		if set, err := s.Load(name); err != nil {
			r.Error = err.Error()
		} else {
			r.URL = set.Lookup("nats.url").Display()
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (a *app) contextShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show the settings of a context, secrets masked", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completion{a}.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			set, err := a.loadContext(name)
			if err == nil && set == nil {
				err = errors.New("no context is in use: name one, or see submit context list")
			}
			if err != nil {
				return exit.UsageError(err)
			}
			tw := tabwriter.NewWriter(a.sys.Out, 0, 4, 2, ' ', 0)
			for _, st := range set.List() {
				if st.Source() != settings.FromDefault {
					fmt.Fprintf(tw, "%s\t%s\n", st.Key, sanitize.Line(st.Display()))
				}
			}
			return tw.Flush()
		},
	}
}

// loadContext reads the context of that name, or else that of --context, of the variable, or in use. Nil: there is none.
func (a *app) loadContext(name string) (*settings.Set, error) {
	if name == "" {
		name = a.context
	}
	if name == "" {
		name, _ = settings.Env(a.sys.Environ, contexts.Variable)
	}
	s, err := contexts.Open(a.sys.Environ)
	if err != nil {
		if name != "" {
			return nil, err
		}
		return nil, nil // a system without a home has no contexts
	}
	if name == "" {
		if name, err = s.Current(); err != nil || name == "" {
			return nil, err
		}
	}
	return s.Load(name)
}

// environ are the variables, with what the context says before them: what comes later wins.
func (a *app) environ() ([]string, error) {
	set, err := a.loadContext("")
	if err != nil {
		return nil, exit.UsageError(err)
	}
	if set == nil {
		return a.sys.Environ, nil
	}
	var given []string
	for _, st := range set.List() { // an empty variable counts as unset, so it must not hide the context's
		if v, ok := settings.Env(a.sys.Environ, st.Env()); ok && v != "" {
			given = append(given, st.Env()+"="+v)
		}
	}
	return slices.Concat(a.sys.Environ, contexts.Environ(set), given), nil
}
