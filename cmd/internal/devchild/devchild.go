// Package devchild is what the programs of the development servers have in common: they are children of a process that
// package devserver runs in. Package devprotocol says what the two say to each other.
package devchild

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"slipway/internal/devprotocol"
)

// Program is one of the programs.
type Program struct {
	// Name of its file.
	Name string
	// About tells a person in one line what it is.
	About string
	// Start starts the server, and returns when it answers. ctx bounds the start only.
	Start func(ctx context.Context, set devprotocol.Settings) (Server, error)
}

// Server is one that runs.
type Server struct {
	// Addr is the host:port where it listens.
	Addr string
	// Ended is closed when the server has ended, by Close or by itself. Nil: only Close ends it.
	Ended <-chan struct{}
	// Err tells how it ended, once Ended is closed. Nil without Ended.
	Err func() error
	// Close ends the server, in less than devprotocol.CloseTime.
	Close func()
}

// Main runs the program until its stdin ends, and returns the exit code. args are those of the process.
func (p *Program) Main(args []string) (code int) {
	if len(args) != 2 || args[1] != devprotocol.ChildArg {
		p.usage(os.Stdout)
		return 0
	}
	report := os.NewFile(devprotocol.ReportFD, "report")
	if err := p.serve(context.Background(), os.Stdin, report); err != nil {
		_ = json.NewEncoder(report).Encode(devprotocol.Report{Error: err.Error()}) // nobody reads it once the start is over
		fmt.Fprintln(os.Stderr, p.Name+":", err)
		return 1
	}
	return 0
}

// usage tells a person what this program is.
func (p *Program) usage(w io.Writer) {
	version := "(unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version + " " + info.GoVersion
	}
	fmt.Fprintf(w, "%s %s\n\n%s\nworker starts this program itself; it has to lie beside worker, or in PATH.\n", p.Name, version, p.About)
}

// serve runs the server as the first line of in says, until in ends. The caller closes it, or dies.
func (p *Program) serve(ctx context.Context, in io.Reader, report io.WriteCloser) error {
	lines := bufio.NewReader(in)
	set, err := p.read(lines)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with in, which is read until the process ends
		io.Copy(io.Discard, lines) //nolint:errcheck // only its end is awaited
		cancel()
	}()
	server, err := p.Start(ctx, set)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := json.NewEncoder(report).Encode(devprotocol.Report{Addr: server.Addr}); err != nil {
		return fmt.Errorf("report the address: %w", err)
	}
	if err := report.Close(); err != nil {
		return fmt.Errorf("report the address: %w", err)
	}
	// Only Close, below, ends the server, so its end is never that of ctx: otherwise an orderly end would look, now and
	// then, like one that nobody wanted.
	select {
	case <-ctx.Done():
		return nil
	case <-server.Ended:
		return fmt.Errorf("the server ended: %w", server.Err())
	}
}

func (p *Program) read(in *bufio.Reader) (set devprotocol.Settings, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return set, fmt.Errorf("read the settings: %w", err)
	}
	if err := json.Unmarshal(line, &set); err != nil {
		return set, fmt.Errorf("read the settings: %w", err)
	}
	if set.Version != devprotocol.Version {
		return set, fmt.Errorf("read the settings: %s speaks version %d of the protocol and was started with version %d: build both programs from one checkout (make build)",
			p.Name, devprotocol.Version, set.Version)
	}
	return set, nil
}
