package s3gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// marker in the environment makes a program the server.
	marker = "SLIPWAY_S3GATEWAY_CHILD=1"
	// startTime bounds the start, closeTime the orderly end before the child is killed.
	startTime = 30 * time.Second
	closeTime = 5 * time.Second
	// logKept is how much of the child's output is kept for an error message.
	logKept = 8 << 10
)

// Options say where the objects lie and where the server listens.
type Options struct {
	// Dir holds the objects, as plain files. It is made if it is missing. Its file system has to have
	// extended attributes. Required.
	Dir string
	// Addr is host:port. Default 127.0.0.1:0, a free port.
	Addr string
	// AccessKey and SecretKey of the server's only account. Default: random ones.
	AccessKey, SecretKey string
	// Log gets what the server prints. Default: nothing.
	Log io.Writer
}

// Gateway is a running server.
type Gateway struct {
	// Endpoint is its URL.
	Endpoint string
	// AccessKey and SecretKey are its account's.
	AccessKey, SecretKey string

	stdin io.Closer
	kill  func() error
	done  chan struct{}
	err   error // valid when done is closed
	once  sync.Once
}

// settings travel on the child's stdin: arguments and environment can be read by others.
type settings struct {
	Dir, Addr, AccessKey, SecretKey string
}

// Start runs the server and returns when it answers. ctx bounds the start only. The caller calls
// Close; if the program dies without, the server ends too.
func Start(ctx context.Context, opts Options) (*Gateway, error) {
	g, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start the S3 gateway: %w", err)
	}
	return g, nil
}

func start(ctx context.Context, opts Options) (*Gateway, error) {
	set, err := opts.settings()
	if err != nil {
		return nil, err
	}
	log := &tail{next: opts.Log}
	g := &Gateway{AccessKey: set.AccessKey, SecretKey: set.SecretKey, done: make(chan struct{})}
	report, err := g.launch(set, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	addr := make(chan string, 1)
	go func() { // ends with the report, or with the child
		line, _ := bufio.NewReader(report).ReadString('\n')
		report.Close()
		addr <- strings.TrimSpace(line)
	}()
	select {
	case a := <-addr:
		if a != "" {
			g.Endpoint = "http://" + a
			return g, nil
		}
		err = errors.New("it ended before it listened")
	case <-ctx.Done():
		err = fmt.Errorf("it does not listen: %w", context.Cause(ctx))
	}
	closeErr := g.Close()
	return nil, fmt.Errorf("%w (%w): %s", err, closeErr, log.String())
}

func (o Options) settings() (settings, error) {
	if o.Dir == "" {
		return settings{}, errors.New("no folder given (Options.Dir)")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return settings{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return settings{}, err
	}
	s := settings{Dir: dir, Addr: o.Addr, AccessKey: o.AccessKey, SecretKey: o.SecretKey}
	if s.Addr == "" {
		s.Addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(s.Addr); err != nil {
		return settings{}, fmt.Errorf("address %q: %w", s.Addr, err)
	}
	if s.AccessKey == "" {
		s.AccessKey = "slipway-" + strings.ToLower(rand.Text()[:12])
	}
	if s.SecretKey == "" {
		s.SecretKey = rand.Text()
	}
	return s, nil
}

// launch starts the child, and returns what it reports.
func (g *Gateway) launch(set settings, log io.Writer) (report *os.File, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	report, reportTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe) //nolint:noctx // it outlives the context of the start; Close ends it
	cmd.Args = []string{"slipway-s3gateway"}
	// Nothing else of the environment: it may hold secrets, which this server has no use for.
	cmd.Env = []string{marker, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = closeTime
	cmd.ExtraFiles = []*os.File{reportTo}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = g.run(cmd)
	}
	reportTo.Close()
	if err != nil {
		report.Close()
		return nil, err
	}
	g.stdin, g.kill = stdin, cmd.Process.Kill
	if _, err := stdin.Write(append(input, '\n')); err != nil {
		return nil, errors.Join(err, report.Close(), g.Close())
	}
	return report, nil
}

// Done is closed when the server has ended, by Close or by itself.
func (g *Gateway) Done() <-chan struct{} { return g.done }

// Err tells how the server ended, once Done is closed.
func (g *Gateway) Err() error {
	select {
	case <-g.done:
		return g.err
	default:
		return nil
	}
}

// Close ends the server, after the requests that are under way, and waits for it.
func (g *Gateway) Close() error {
	g.once.Do(func() {
		ended := false
		select {
		case <-g.done:
			ended = true
		default:
		}
		g.stdin.Close()
		if ended {
			return
		}
		select {
		case <-g.done:
		case <-time.After(closeTime):
			g.kill() //nolint:errcheck // it fails only if the child has ended
		}
	})
	<-g.done
	return g.err
}

// tail passes output on, and keeps the end of it.
type tail struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	next io.Writer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - logKept; over > 0 {
		t.buf.Next(over)
	}
	if t.next != nil {
		return t.next.Write(b)
	}
	return len(b), nil
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
