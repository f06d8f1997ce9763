// Package cli is what both programs do alike: signals, the streams, the mapping of
// errors to exit codes, and the choice of how to print.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/cmd/internal/settings"
	"slipway/cmd/internal/watch"
	"slipway/internal/hint"
)

// ErrInterrupted says that the program was asked to end by a signal.
var ErrInterrupted = errors.New("interrupted")

// System is what a program gets from its surroundings. Tests make their own.
type System struct {
	Environ  []string
	In       io.Reader
	Out, Err io.Writer
	// Interrupts gets one value for each SIGINT or SIGTERM, but for those within oneWish of the last one that counted.
	Interrupts <-chan struct{}
}

// Main runs a program on the real system, and returns its exit code.
func Main(run func(ctx context.Context, sys System, args []string) int) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	interrupts := make(chan struct{}, 8)
	go countWishes(signals, interrupts) // lives as long as the process
	sys := System{Environ: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Interrupts: interrupts}
	return run(context.Background(), sys, os.Args[1:])
}

// oneWish is how long further signals mean the same wish. timeout(1) signals its child and then the whole group, so that
// the child gets two TERMs within microseconds; supervisors that stop a tree do alike (cockroachdb/cockroach#48070).
const oneWish = time.Second

// countWishes hands on one interrupt for each wish, until signals is closed.
func countWishes(signals <-chan os.Signal, interrupts chan<- struct{}) {
	var last time.Time
	for range signals {
		if !last.IsZero() && time.Since(last) < oneWish {
			continue
		}
		last = time.Now()
		select {
		case interrupts <- struct{}{}:
		default: // eight unread interrupts say it all
		}
	}
}

// Execute runs the command that args name, prints its error, and returns the exit code.
func Execute(ctx context.Context, sys System, root *cobra.Command, args []string) int {
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append([]string{}, args...)) // not nil: cobra would read the arguments of the process
	root.SetIn(sys.In)
	root.SetOut(sys.Out)
	root.SetErr(sys.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		err = hint.With(exit.UsageError(err), "See %s --help", cmd.CommandPath())
	}
	code, say := exit.Code(err)
	if errors.Is(err, ErrInterrupted) || errors.Is(err, watch.ErrDetached) {
		code = exit.Canceled
	}
	if say != nil {
		fmt.Fprintf(sys.Err, "%s: %s\n", root.Name(), strings.TrimRight(sanitize.Text(say.Error()), "\n"))
		if h := hint.Of(say); h != "" {
			fmt.Fprintln(sys.Err, sanitize.Text(h))
		}
	}
	return code
}

// Interruptible returns a context that the next interrupt cancels, with the cause ErrInterrupted.
func (s System) Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.Interrupts:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// Output is the value of --output.
type Output string

// The outputs.
const (
	Text Output = "text"
	JSON Output = "json"
)

// String returns o as a text.
func (o *Output) String() string { return string(*o) }

// Set accepts text and json.
func (o *Output) Set(s string) error {
	if s != string(Text) && s != string(JSON) {
		return fmt.Errorf("must be text or json")
	}
	*o = Output(s)
	return nil
}

// Type names the flag's values in a help text.
func (o *Output) Type() string { return "text|json" }

// OneArg wants one argument, and names it when it is not there: what is "FILE" in the help text.
func OneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("want one %s, got %d arguments", what, len(args))
		}
		return nil
	}
}

// SomeArgs wants at least one argument, and names it when it is not there.
func SomeArgs(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("want at least one %s", what)
		}
		return nil
	}
}

// AddOutput adds --output to cmd.
func AddOutput(cmd *cobra.Command) *Output {
	o := Text
	cmd.Flags().VarP(&o, "output", "o", "how to print")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return &o
}

// Screen returns the options of a Printer on this system.
func (s System) Screen(raw bool) display.Options {
	return display.Options{Out: s.Out, Err: s.Err, Color: s.color(), Raw: raw, Quote: isTerminal(s.Out) && !raw}
}

// Printer returns the Printer that o and raw ask for.
func (s System) Printer(o Output, raw bool) display.Printer { return o.Printer(s.Screen(raw)) }

// Printer returns the Printer of o with opts.
func (o Output) Printer(opts display.Options) display.Printer {
	if o == JSON {
		return display.NewJSON(opts)
	}
	return display.NewHuman(opts)
}

// color follows https://no-color.org: colors on a terminal unless NO_COLOR is set.
func (s System) color() bool {
	no, _ := settings.Env(s.Environ, "NO_COLOR")
	term, _ := settings.Env(s.Environ, "TERM")
	return no == "" && term != "dumb" && isTerminal(s.Err)
}

// Version describes the build.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, revision, dirty := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = " with local changes"
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	out := version
	if revision != "" && !strings.Contains(version, revision[:min(12, len(revision))]) {
		out += " " + revision[:min(12, len(revision))] + dirty
	}
	return fmt.Sprintf("%s %s", out, info.GoVersion)
}

// AddVersion adds the command version to root, and the flag --version, which does the same.
func AddVersion(root *cobra.Command) {
	root.Version = Version()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version") // of our own: cobra's would have a short form, -v
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), root.Name(), Version())
		},
	})
}
