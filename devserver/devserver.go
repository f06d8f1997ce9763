package devserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"slipway/internal/devprotocol"
)

// startTime bounds the start. A NATS server that recovers a large store takes seconds, not minutes.
const startTime = 40 * time.Second

// ErrNoProgram says that slipway-devserver is not installed, or is no program.
var ErrNoProgram = errors.New("there is no program " + devprotocol.Program + " that can be started")

// ErrEnded says that the servers ended although nobody closed them.
var ErrEnded = errors.New("the development servers ended")

// Options says which servers to run. At least one of NATS and S3 is required.
type Options struct {
	// Program is the path of slipway-devserver. Default: beside the running program, else in PATH.
	Program string
	NATS    *NATS
	S3      *S3
	// Log gets what the servers print. Default: nothing.
	Log io.Writer
}

// NATS are the options of a NATS server with JetStream. Every write is on disk before it is confirmed.
type NATS struct {
	// Dir holds the streams. It is made if it is missing. No two servers may share one. Required.
	Dir string
	// Addr is the host:port to listen on. Default 127.0.0.1:0, a free port.
	Addr string
	// Private: only who has the random password in Servers.NATSURL can connect.
	Private bool
}

// S3 are the options of an S3 gateway.
type S3 struct {
	// Dir holds the objects, as plain files. It is made if it is missing. Its file system has to have extended
	// attributes. Required.
	Dir string
	// Addr is the host:port to listen on. Default 127.0.0.1:0, a free port.
	Addr string
	// AccessKey and SecretKey are those of the only account. Default: random ones.
	AccessKey, SecretKey string
}

// Servers is the child process. Its methods are safe for concurrent use.
type Servers struct {
	// NATSURL is the URL of the NATS server, with its user and password if it is Private. Empty without NATS.
	NATSURL string
	// Endpoint is the URL of the S3 gateway; AccessKey and SecretKey are those of its account. Empty without S3.
	Endpoint, AccessKey, SecretKey string

	stdin io.Closer
	kill  func() error
	done  chan struct{}
	err   error // valid when done is closed
	once  sync.Once
}

// Start runs the servers and returns when all of them answer. ctx bounds the start only. The caller calls Close; if
// the calling process dies first, the servers end too.
//
// Errors: ErrNoProgram if slipway-devserver is not found; otherwise what the servers said.
func Start(ctx context.Context, opts Options) (*Servers, error) {
	s, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start the development servers: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, opts Options) (*Servers, error) {
	set, err := opts.settings()
	if err != nil {
		return nil, err
	}
	program, err := find(opts.Program)
	if err != nil {
		return nil, err
	}
	log := &tail{next: opts.Log}
	s := &Servers{done: make(chan struct{})}
	report, err := s.launch(program, set, log)
	if err != nil {
		return nil, err
	}
	r, err := s.awaitReport(ctx, report)
	if err != nil {
		closeErr := s.Close()
		return nil, errors.Join(fmt.Errorf("%w: %s", err, log), closeErr)
	}
	if r.Error != "" {
		s.Close() // its exit code says no more than the report
		return nil, errors.New(r.Error)
	}
	if set.NATS != nil && r.NATS == "" || set.S3 != nil && r.S3 == "" {
		return nil, errors.Join(fmt.Errorf("%s reported no address: is it %s?", program, devprotocol.Program), s.Close())
	}
	s.describe(set, r)
	return s, nil
}

// settings checks o and fills in its defaults.
func (o Options) settings() (devprotocol.Settings, error) {
	set := devprotocol.Settings{Version: devprotocol.Version}
	if o.NATS == nil && o.S3 == nil {
		return set, errors.New("Options ask for no server: set NATS, S3 or both")
	}
	if n := o.NATS; n != nil {
		dir, addr, err := place("NATS", n.Dir, n.Addr)
		if err != nil {
			return set, err
		}
		set.NATS = &devprotocol.NATS{Dir: dir, Addr: addr}
		if n.Private {
			set.NATS.User, set.NATS.Password = "slipway", rand.Text()
		}
	}
	if s := o.S3; s != nil {
		dir, addr, err := place("S3", s.Dir, s.Addr)
		if err != nil {
			return set, err
		}
		if (s.AccessKey == "") != (s.SecretKey == "") {
			return set, errors.New("S3.AccessKey and S3.SecretKey go together: set both or neither")
		}
		set.S3 = &devprotocol.S3{Dir: dir, Addr: addr, AccessKey: s.AccessKey, SecretKey: s.SecretKey}
		if s.AccessKey == "" {
			set.S3.AccessKey, set.S3.SecretKey = "slipway-"+strings.ToLower(rand.Text()[:12]), rand.Text()
		}
	}
	return set, nil
}

// place returns where one server keeps its data, as an absolute path, and where it listens.
func place(field, dir, addr string) (absDir, listen string, err error) {
	if dir == "" {
		return "", "", fmt.Errorf("%s.Dir is not set", field)
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return "", "", fmt.Errorf("%s.Addr %q: want host:port", field, addr)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", fmt.Errorf("%s.Dir: %w", field, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("%s.Dir: %w", field, err)
	}
	return dir, addr, nil
}

// awaitReport reads the report of the start, which must come within startTime. It closes report.
func (s *Servers) awaitReport(ctx context.Context, report io.ReadCloser) (devprotocol.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	type result struct {
		devprotocol.Report
		err error
	}
	got := make(chan result, 1)
	go func() { // ends with the report, or with the child
		var r result
		r.err = json.NewDecoder(report).Decode(&r.Report)
		report.Close()
		got <- r
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return r.Report, errors.New(devprotocol.Program + " ended before it listened")
		}
		return r.Report, nil
	case <-ctx.Done():
		return devprotocol.Report{}, fmt.Errorf("%s does not listen: %w", devprotocol.Program, context.Cause(ctx))
	}
}

// describe fills in where the servers are.
func (s *Servers) describe(set devprotocol.Settings, r devprotocol.Report) {
	if n := set.NATS; n != nil {
		u := url.URL{Scheme: "nats", Host: r.NATS}
		if n.User != "" {
			u.User = url.UserPassword(n.User, n.Password)
		}
		s.NATSURL = u.String()
	}
	if g := set.S3; g != nil {
		s.Endpoint, s.AccessKey, s.SecretKey = "http://"+r.S3, g.AccessKey, g.SecretKey
	}
}

// Done is closed when the servers have ended, by Close or by themselves.
func (s *Servers) Done() <-chan struct{} { return s.done }

// Err tells how the servers ended, once Done is closed; nil before that, and after an orderly end.
func (s *Servers) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the servers, after the requests that are under way, and waits for their process. After five seconds it
// kills the process. It may be called twice; the error is how the process ended.
func (s *Servers) Close() error {
	s.once.Do(func() {
		s.stdin.Close()
		select {
		case <-s.done:
		case <-time.After(devprotocol.CloseTime):
			s.kill() //nolint:errcheck // it fails only if the process has ended
		}
	})
	<-s.done
	return s.err
}
