package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"time"

	"github.com/moby/moby/client"

	"slipway/container"
)

// Config says which engine to use, and how. The zero value is the engine of the
// environment: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
type Config struct {
	// Host is the engine's address, such as unix:///run/docker.sock or tcp://10.0.0.7:2376. Empty means DOCKER_HOST's, else the local socket.
	Host string
	// Auth holds the credentials of registries by their host ("docker.io", "ghcr.io", "localhost:5000").
	// They are sent with a pull from that registry and nowhere else; no file of the docker command is read.
	Auth map[string]Auth
	// Credentials is asked, before each pull, for the credential of a registry that is not in Auth. The zero Auth is none. It
	// is called from many goroutines at once. Optional; package credentials has those of the docker command.
	Credentials func(ctx context.Context, registry string) (Auth, error)
	// Parallel bounds creates, starts and removes at once. Default: the number of processors, at least 2.
	Parallel int
	// Runtime is the OCI runtime, such as "runsc". Empty means the engine's default.
	Runtime string
	// CgroupParent puts all boxes under one parent. Empty means the engine's default.
	CgroupParent string
	// PullStall ends a pull that makes no progress for so long. Default DefaultPullStall.
	PullStall time.Duration
	// MinFree is how many bytes the engine's disk must have free, else Check fails (container.ErrEngineFull). It is known only
	// if the engine is on this machine and its folder can be seen. Default DefaultMinFree; negative: it is not looked at.
	MinFree int64
}

// DefaultPullStall is the default of Config.PullStall.
const DefaultPullStall = 2 * time.Minute

// Auth is the credential of one registry: a user and password, or an identity token.
type Auth struct {
	Username, Password, IdentityToken string
}

// Provider makes boxes on one engine. It is a container.Provider.
type Provider struct {
	api
	lifecycle chan struct{} // holds one element for each running create, start or remove
	puller    puller
	pulls     singleFlight[pullKey, container.Image]
	delivery  delivery
	left      leftovers
	witness   witness
	disk      disk
}

var _ container.Provider = (*Provider)(nil)

// New returns a Provider for the engine that cfg names. It does no I/O; Check asks the engine.
func New(cfg Config) (*Provider, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("set up docker client: %w", err)
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = max(2, runtime.NumCPU())
	}
	if cfg.PullStall == 0 {
		cfg.PullStall = DefaultPullStall
	}
	host := client.WithHostFromEnv()
	if cfg.Host != "" {
		host = client.WithHost(cfg.Host) // DOCKER_HOST is not read then: it may be malformed
	}
	opts := []client.Opt{client.WithTLSClientConfigFromEnv(), host, client.WithAPIVersionFromEnv()}
	cli, err := client.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("set up docker client (DOCKER_HOST, docker host): %w", err)
	}
	a := api{cli}
	p := &Provider{
		api: a, lifecycle: make(chan struct{}, cfg.Parallel),
		puller:   puller{api: a, auth: cfg.Auth, ask: cfg.Credentials, stall: cfg.PullStall},
		delivery: delivery{api: a, volumePrefix: volumePrefix, runtime: cfg.Runtime, cgroupParent: cfg.CgroupParent},
	}
	p.witness.api = a
	p.disk.api, p.disk.min = a, cmp.Or(cfg.MinFree, DefaultMinFree)
	p.left = leftovers{api: a, delivery: &p.delivery}
	return p, nil
}

func (c Config) validate() error {
	if c.Parallel < 0 || c.PullStall < 0 {
		return errors.New("fields Parallel and PullStall must not be negative")
	}
	for _, field := range []struct {
		name, value string
		check       func(string) error
	}{{"Host", c.Host, CheckHost}, {"Runtime", c.Runtime, CheckRuntime}, {"CgroupParent", c.CgroupParent, CheckCgroupParent}} {
		if field.value == "" {
			continue
		}
		if err := field.check(field.value); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return nil
}

var (
	runtimeRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+/-]{0,127}$`)
	cgroupRE  = regexp.MustCompile(`^/?[A-Za-z0-9][A-Za-z0-9._:@-]*(/[A-Za-z0-9][A-Za-z0-9._:@-]*)*$`)
)

// CheckRuntime tells whether name can be that of an OCI runtime. Whether the engine has it shows with the first box.
func CheckRuntime(name string) error {
	if !runtimeRE.MatchString(name) {
		return fmt.Errorf("want the name of a runtime such as runsc, not %.100q", name)
	}
	return nil
}

// CheckCgroupParent tells whether path can be that of a cgroup.
func CheckCgroupParent(path string) error {
	if !cgroupRE.MatchString(path) {
		return fmt.Errorf("want a cgroup such as slipway.slice, or /slipway for an engine without systemd, not %.100q", path)
	}
	return nil
}

// CheckHost tells whether host can be the address of an engine. Its error says what is wanted.
func CheckHost(host string) error {
	u, err := client.ParseHostURL(host)
	ok := err == nil
	if ok {
		switch u.Scheme {
		case "unix", "npipe":
		case "tcp", "http", "https":
			_, _, err = net.SplitHostPort(u.Host)
			ok = err == nil
		default: // the client would take any other word for the name of a network
			ok = false
		}
	}
	if !ok {
		return fmt.Errorf("want an engine's address such as unix:///var/run/docker.sock or tcp://10.0.0.7:2376, not %.100q", host)
	}
	return nil
}

// Close releases the connections to the engine. Boxes are not touched. No method may be running or follow.
func (p *Provider) Close() error {
	p.pulls.wait()
	p.delivery.fills.wait()
	p.witness.stop()
	if err := p.cli.Close(); err != nil {
		return fmt.Errorf("close docker client: %w", err)
	}
	return nil
}

// enter waits for a place among the lifecycle calls; leave gives it back.
func (p *Provider) enter(ctx context.Context) error {
	select {
	case p.lifecycle <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for other boxes' starts and removals: %w", context.Cause(ctx))
	}
}

func (p *Provider) leave() { <-p.lifecycle }
