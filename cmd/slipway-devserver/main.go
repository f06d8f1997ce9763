// Command slipway-devserver is a NATS server and an S3 gateway in one process, for worker dev, worker run and the
// tests. Package slipway/devserver starts it and documents what it does; it is not for use by hand.
//
// It is a module of its own: a production worker must neither link these servers nor list their modules.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"slipway/internal/devprotocol"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "--child" {
		usage()
		return
	}
	report := os.NewFile(devprotocol.ReportFD, "report")
	if err := serve(os.Stdin, report); err != nil {
		_ = json.NewEncoder(report).Encode(devprotocol.Report{Error: err.Error()}) // nobody reads it once the start is over
		fmt.Fprintln(os.Stderr, devprotocol.Program+":", err)
		os.Exit(1)
	}
}

// usage tells a person what this program is.
func usage() {
	version := "(unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version + " " + info.GoVersion
	}
	fmt.Printf("%s %s\n\nThe development servers of slipway. worker dev and worker run start this program themselves;\n"+
		"it has to lie beside worker, or in PATH.\n", devprotocol.Program, version)
}

// serve runs the servers that the first line of in asks for, until in ends. The caller closes it, or dies.
func serve(in io.Reader, report *os.File) error {
	lines := bufio.NewReader(in)
	set, err := read(lines)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, lines) //nolint:errcheck // only its end is awaited
		cancel()
	}()
	run := &servers{}
	defer run.close()
	r, err := run.start(ctx, set)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(report).Encode(r); err != nil {
		return fmt.Errorf("report the addresses: %w", err)
	}
	if err := report.Close(); err != nil {
		return fmt.Errorf("report the addresses: %w", err)
	}
	return run.wait(ctx)
}

func read(in *bufio.Reader) (set devprotocol.Settings, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return set, fmt.Errorf("read the settings: %w", err)
	}
	if err := json.Unmarshal(line, &set); err != nil {
		return set, fmt.Errorf("read the settings: %w", err)
	}
	if set.Version != devprotocol.Version {
		return set, fmt.Errorf("read the settings: %s speaks version %d of the protocol and was started with version %d: build both programs from one checkout (make build)",
			devprotocol.Program, devprotocol.Version, set.Version)
	}
	return set, nil
}

// servers are those that run.
type servers struct {
	nats *natsServer // nil: none
	s3   *gateway    // nil: none
}

// start starts both at once: each takes a while.
func (s *servers) start(ctx context.Context, set devprotocol.Settings) (r devprotocol.Report, err error) {
	natsDone := make(chan error, 1)
	go func() {
		var err error
		if set.NATS != nil {
			s.nats, r.NATS, err = startNATS(*set.NATS)
		}
		natsDone <- err
	}()
	if set.S3 != nil {
		s.s3, r.S3, err = startS3(ctx, *set.S3)
	}
	natsErr := <-natsDone // only then is r complete
	return r, errors.Join(natsErr, err)
}

// wait returns when ctx is done, or when the gateway ended by itself. Only close ends the gateway, so its end is never
// that of ctx: otherwise an orderly end would look, now and then, like one that nobody wanted.
func (s *servers) wait(ctx context.Context) error {
	if s.s3 == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.s3.ended:
		return fmt.Errorf("the S3 gateway ended: %w", s.s3.err)
	}
}

// close ends the servers. The gateway waits for requests under way, for ever if a client does: it gets half of the
// time after which this process is killed.
func (s *servers) close() {
	if s.nats != nil {
		s.nats.Close()
	}
	if s.s3 == nil {
		return
	}
	s.s3.cancel()
	select {
	case <-s.s3.ended:
	case <-time.After(devprotocol.CloseTime / 2):
	}
}
