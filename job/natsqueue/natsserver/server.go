// Package natsserver runs a NATS server with JetStream inside the program: the
// zero-setup queue of a single machine. Every write is synced to disk before it
// is confirmed, since no replica protects it.
//
//	Start(Options{Dir, Addr}) ──► Server ── ClientURL, InProcessConn ──► natsqueue.Connect
package natsserver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyWait bounds the start. Recovering a large store takes seconds, not minutes.
const readyWait = 30 * time.Second

// Options says how a Server is started.
type Options struct {
	// Dir keeps the streams. Required. No two servers may share one.
	Dir string
	// Addr is the host:port to listen on; port 0 picks a free one. Empty means
	// 127.0.0.1:0. NoListen overrides it.
	Addr string
	// NoListen serves InProcessConn alone and opens no port.
	NoListen bool
	// User and Password are those of the only account. Without them, everybody who reaches the address may connect.
	User, Password string
	// Name is shown to clients and in the server's monitoring. Default slipway.
	Name string
	// MaxPayload is the largest message, in bytes. Default 1 MiB, as NATS has it.
	MaxPayload int32
	// MaxStore bounds the bytes of all streams. Default: three quarters of what is free on the disk.
	MaxStore int64
	// Config is a NATS configuration file, such as one with users and rights. Its
	// settings are the base; those above win. Optional.
	Config string
}

// Server is a running NATS server. Its methods are safe for concurrent use.
type Server struct {
	srv *server.Server
}

// Start starts a server and waits until it takes connections. The caller calls Close.
func Start(o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("start nats-server: Dir is not set")
	}
	opts, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	if err := checkFree(opts); err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(readyWait) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, fmt.Errorf("start nats-server: not ready on %s with its store in %s: is the address taken, the folder in use or not writable?", opts.Host+":"+strconv.Itoa(opts.Port), o.Dir)
	}
	return &Server{srv: srv}, nil
}

// server translates o. The server must neither log to the program's streams nor
// take its signals.
func (o Options) server() (*server.Options, error) {
	opts := &server.Options{}
	if o.Config != "" {
		var err error
		if opts, err = server.ProcessConfigFile(o.Config); err != nil {
			return nil, fmt.Errorf("read Config: %w", err)
		}
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("read Addr: %w", err)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("read Addr: %q is no port", port)
	}
	opts.Host, opts.Port = host, n
	if n == 0 {
		opts.Port = server.RANDOM_PORT
	}
	opts.ServerName = o.Name
	if opts.ServerName == "" {
		opts.ServerName = "slipway"
	}
	opts.DontListen = o.NoListen
	if o.User != "" {
		opts.Username, opts.Password = o.User, o.Password
	}
	opts.JetStream, opts.StoreDir, opts.SyncAlways = true, o.Dir, true
	opts.JetStreamMaxStore = o.MaxStore
	opts.NoSigs, opts.NoLog = true, true
	if o.MaxPayload > 0 {
		opts.MaxPayload = o.MaxPayload
	}
	return opts, nil
}

// checkFree tells at once when another program has the address. The server itself only logs it, and is not ready for ever.
func checkFree(opts *server.Options) error {
	if opts.DontListen || opts.Port == server.RANDOM_PORT {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))) //nolint:noctx // it does not wait
	if err != nil {
		return err
	}
	return l.Close()
}

// ClientURL is what clients connect to. It makes sense only for a server that listens.
func (s *Server) ClientURL() string { return s.srv.ClientURL() }

// Addr is the host:port that the server listens on, nil with NoListen.
func (s *Server) Addr() net.Addr { return s.srv.Addr() }

// InProcessConn opens a connection that needs no port.
func (s *Server) InProcessConn() (net.Conn, error) { return s.srv.InProcessConn() }

// Close stops the server and waits until its store is closed. It may be called twice.
func (s *Server) Close() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}
