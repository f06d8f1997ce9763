package devserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"slipway/internal/devprotocol"
)

// ErrNoProgram says that the program of a server is not installed, or is no program. The error names it.
var ErrNoProgram = errors.New("no program that can be started")

// ErrEnded says that a server ended although nobody closed it.
var ErrEnded = errors.New("a development server ended")

// Options says which servers to run. At least one of NATS and S3 is required. A server that is not asked for needs no
// program.
type Options struct {
	// Programs is the folder of slipway-devserver-nats and slipway-devserver-s3. Default: each is taken from beside the
	// running program, else from PATH.
	Programs string
	NATS     *NATS
	S3       *S3
	// Log gets what the servers print, one write after the other. Default: nothing.
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

// Servers are the running servers, each a child process. Its methods are safe for concurrent use.
type Servers struct {
	// NATSURL is the URL of the NATS server, with its user and password if it is Private. Empty without NATS.
	NATSURL string
	// Endpoint is the URL of the S3 gateway; AccessKey and SecretKey are those of its account. Empty without S3.
	Endpoint, AccessKey, SecretKey string

	children []*child
	done     chan struct{}
	first    sync.Once // the first child that ends closes done
	err      error     // valid when done is closed
}

// Start runs the servers and returns when all of them answer. ctx bounds the start only. The caller calls Close; if
// the calling process dies first, the servers end too.
//
// Errors: ErrNoProgram if the program of a server is not found; otherwise what the servers said. No server runs then.
func Start(ctx context.Context, opts Options) (*Servers, error) {
	s, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start the development servers: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, opts Options) (*Servers, error) {
	s := &Servers{done: make(chan struct{})}
	if err := s.plan(opts); err != nil {
		return nil, err
	}
	errs := make([]error, len(s.children))
	for i, c := range s.children { // all are looked for before the first one is started
		errs[i] = c.find(opts.Programs)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var all sync.WaitGroup // each takes a while
	for i, c := range s.children {
		all.Go(func() { errs[i] = c.start(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for i, c := range s.children {
			if errs[i] == nil {
				err = errors.Join(err, c.close())
			}
		}
		return nil, err
	}
	s.describe()
	return s, nil
}

// plan checks o, fills in its defaults, and makes the children that are to be started.
func (s *Servers) plan(o Options) error {
	if o.NATS == nil && o.S3 == nil {
		return errors.New("Options ask for no server: set NATS, S3 or both")
	}
	log := &serial{next: o.Log}
	add := func(name string, set devprotocol.Settings) {
		c := &child{name: name, set: set, log: &tail{next: log}, done: make(chan struct{})}
		c.ended = func() { s.first.Do(func() { s.err = c.err; close(s.done) }) }
		s.children = append(s.children, c)
	}
	if n := o.NATS; n != nil {
		set, err := settings("NATS", n.Dir, n.Addr)
		if err != nil {
			return err
		}
		if n.Private {
			set.User, set.Password = "slipway", rand.Text()
		}
		add(devprotocol.NATSProgram, set)
	}
	if g := o.S3; g != nil {
		set, err := settings("S3", g.Dir, g.Addr)
		if err != nil {
			return err
		}
		if (g.AccessKey == "") != (g.SecretKey == "") {
			return errors.New("S3.AccessKey and S3.SecretKey go together: set both or neither")
		}
		set.User, set.Password = g.AccessKey, g.SecretKey
		if g.AccessKey == "" {
			set.User, set.Password = "slipway-"+strings.ToLower(rand.Text()[:12]), rand.Text()
		}
		add(devprotocol.S3Program, set)
	}
	return nil
}

// settings says where one server keeps its data, as an absolute path, and where it listens.
func settings(field, dir, addr string) (set devprotocol.Settings, err error) {
	if dir == "" {
		return set, fmt.Errorf("%s.Dir is not set", field)
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return set, fmt.Errorf("%s.Addr %q: want host:port", field, addr)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return set, fmt.Errorf("%s.Dir: %w", field, err)
	}
	return devprotocol.Settings{Version: devprotocol.Version, Dir: dir, Addr: addr}, nil
}

// describe fills in where the servers are.
func (s *Servers) describe() {
	for _, c := range s.children {
		switch c.name {
		case devprotocol.NATSProgram:
			u := url.URL{Scheme: "nats", Host: c.addr}
			if c.set.User != "" {
				u.User = url.UserPassword(c.set.User, c.set.Password)
			}
			s.NATSURL = u.String()
		case devprotocol.S3Program:
			s.Endpoint, s.AccessKey, s.SecretKey = "http://"+c.addr, c.set.User, c.set.Password
		}
	}
}

// Done is closed when a server has ended, by Close or by itself. If it was by itself, the others go on until Close.
func (s *Servers) Done() <-chan struct{} { return s.done }

// Err tells how the first of the servers ended, once Done is closed; nil before that, and after an orderly end.
func (s *Servers) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the servers, after the requests that are under way, and waits for their processes. After five seconds it
// kills those that still run. It may be called twice; the error is how the processes ended.
func (s *Servers) Close() error {
	errs := make([]error, len(s.children))
	var all sync.WaitGroup
	for i, c := range s.children {
		all.Go(func() { errs[i] = c.close() })
	}
	all.Wait()
	return errors.Join(errs...)
}
