package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"slipway/container"
	"slipway/internal/hint"
)

var errStalled = errors.New("pull stalled")

// puller makes the engine pull images.
type puller struct {
	api
	auth  map[string]Auth                             // as in Config
	ask   func(context.Context, string) (Auth, error) // Config.Credentials
	stall time.Duration                               // Config.PullStall
}

// pull fetches an image. It ends with ctx, or when nothing moved for the stall time.
func (p *puller) pull(ctx context.Context, what pulled, say func(string)) error {
	var err error
	if what.auth, err = p.credential(ctx, what.domain()); err != nil {
		return hint.With(fmt.Errorf("pull image %s: %w: %w", what, container.ErrImagePull, err), "%s", hint.Of(err))
	}
	opts := client.ImagePullOptions{RegistryAuth: what.auth}
	if what.platform != nil {
		opts.Platforms = []ocispec.Platform{*what.platform}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(p.stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	say("pulling " + what.String())
	resp, err := p.cli.ImagePull(ctx, what.name, opts)
	if errdefs.IsInternal(err) {
		err = p.reason(ctx, what, err)
	}
	if err != nil {
		return p.pullError(ctx, what, err)
	}
	defer func() { _ = resp.Close() }()
	for msg, err := range resp.JSONMessages(ctx) {
		if err != nil {
			return p.pullError(ctx, what, err)
		}
		watchdog.Reset(p.stall)
		if msg.Error != nil {
			return p.pullError(ctx, what, msg.Error)
		}
		say(strings.TrimSpace(msg.Status + " " + msg.ID))
	}
	if ctx.Err() != nil {
		return p.pullError(ctx, what, context.Cause(ctx))
	}
	return nil
}

// reason asks again in another way: Docker 20.10 answers to a pull with wrong credentials as to
// any other failure, but to this question it gives the registry's answer its type.
func (p *puller) reason(ctx context.Context, what pulled, err error) error {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	_, typed := p.cli.DistributionInspect(ctx, what.name, client.DistributionInspectOptions{EncodedRegistryAuth: what.auth})
	if errdefs.IsUnauthorized(typed) || errdefs.IsPermissionDenied(typed) || errdefs.IsNotFound(typed) {
		return typed
	}
	return err
}

func (p *puller) pullError(ctx context.Context, what pulled, err error) error {
	domain := what.domain()
	status := 0
	if m, ok := errors.AsType[*jsonstream.Error](err); ok {
		status = m.Code
	}
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return fmt.Errorf("pull image %s: %w: nothing came from %s for %v", what, container.ErrImagePull, domain, p.stall)
	case ctx.Err() != nil:
		return fmt.Errorf("pull image %s: %w", what, context.Cause(ctx))
	case errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) || status == http.StatusUnauthorized || status == http.StatusForbidden:
		return what.denied(err)
	case says(err, "no matching manifest", "no match for platform", "does not match the specified platform"):
		return fmt.Errorf("pull image %s: %w for this platform: %w", what, container.ErrImageNotFound, err)
	case errdefs.IsNotFound(err) || status == http.StatusNotFound:
		return hint.With(fmt.Errorf("pull image %s: %w: %w", what, container.ErrImageNotFound, err),
			"check its spelling, and if it is private give the worker credentials for %s", domain)
	case says(err, "no basic auth credentials", "unauthorized", "authentication required", "requested access to the resource is denied"):
		return what.denied(err) // engines before 28 give it as a text, with the status of any failure
	case client.IsErrConnectionFailed(err):
		return p.unavailable("pull image "+what.String(), err)
	}
	wrapped := fmt.Errorf("pull image %s: %w: %w", what, container.ErrImagePull, err)
	if advice := what.advice(err); advice != "" {
		return hint.With(wrapped, "%s", advice)
	}
	return wrapped
}

// denied is the error of an image that the registry does not give to these credentials, or to nobody without any.
func (w pulled) denied(err error) error {
	advice := "check the worker's credentials for " + w.domain()
	if w.auth == "" {
		advice = "the worker has no credentials for " + w.domain() + ": give it some"
	}
	return hint.With(fmt.Errorf("pull image %s: %w: %w", w, container.ErrImageAuth, err), "%s", advice)
}

// advice returns advice for an error that the engine gives as text only.
func (w pulled) advice(err error) string {
	switch {
	case says(err, "dial tcp", "no such host", "connection refused", "i/o timeout", "request canceled while waiting", "deadline exceeded"):
		return "the engine can't reach the registry " + w.domain() + ": check the name, and the engine's network, DNS and proxy"
	case says(err, "x509:", "tls:", "HTTP response to HTTPS client"):
		return "the engine does not trust the registry " + w.domain() + ": give it the registry's certificate, or list it there as insecure"
	case w.auth == "" && says(err, "auth", "denied", "credential", "login"):
		return "if it is private, give the worker credentials for " + w.domain()
	}
	return ""
}

// says reports whether err's text holds one of the words.
func says(err error, words ...string) bool {
	text := err.Error()
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// pulled names the image of a pull.
type pulled struct {
	name     string
	platform *ocispec.Platform // nil: the engine's
	auth     string            // the credential, as the engine wants it; empty: none
}

func (w pulled) domain() string {
	domain, _, _ := strings.Cut(w.name, "/")
	return domain
}

// String names the platform too: with a wrong one, all else may look right.
func (w pulled) String() string {
	if w.platform == nil {
		return w.name
	}
	return w.name + " for " + platformText(w.platform)
}

func platformText(p *ocispec.Platform) string { return path.Join(p.OS, p.Architecture, p.Variant) }

// credential returns that of a registry, as a pull wants it. None is fine.
func (p *puller) credential(ctx context.Context, registryHost string) (string, error) {
	a, ok := p.auth[registryHost]
	if !ok && p.ask != nil {
		var err error
		if a, err = p.ask(ctx, registryHost); err != nil {
			return "", err
		}
	}
	if a == (Auth{}) {
		return "", nil
	}
	s, err := authconfig.Encode(registry.AuthConfig{
		Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, ServerAddress: registryHost,
	})
	if err != nil {
		return "", fmt.Errorf("encode credentials for %s: %w", registryHost, err)
	}
	return s, nil
}
