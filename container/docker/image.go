package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"slipway/container"
)

type pullKey struct {
	name, platform string
	always         bool
}

var errStalled = errors.New("pull stalled")

// Prepare makes sure that the image is there. See container.Provider.
func (p *Provider) Prepare(ctx context.Context, req container.ImageRequest) (container.Image, error) {
	name, repo, err := canonicalImage(req.Image)
	if err != nil {
		return container.Image{}, err
	}
	platform, err := parsePlatform(req.Platform)
	if err != nil {
		return container.Image{}, err
	}
	byID := repo == ""
	if req.Pull != container.PullAlways || byID {
		img, err := p.inspectImage(ctx, name, repo, platform)
		if err == nil || !errors.Is(err, container.ErrImageNotFound) {
			return img, err
		}
		if req.Pull == container.PullNever || byID {
			return container.Image{}, fmt.Errorf("find image %s on the engine: %w; load it there, or use another pull policy than never", name, container.ErrImageNotFound)
		}
	}
	key := pullKey{name, req.Platform, req.Pull == container.PullAlways}
	return p.pulls.do(ctx, key, req.Progress, func(ctx context.Context, say func(string)) (container.Image, error) {
		if err := p.pull(ctx, name, platform, say); err != nil {
			return container.Image{}, err
		}
		img, err := p.inspectImage(ctx, name, repo, platform)
		img.Pulled = err == nil
		return img, err
	})
}

// canonicalImage spells the reference out, so that "cafe" can't mean the image whose id begins
// so. A bare id keeps its name and has no repository.
func canonicalImage(ref string) (name, repo string, err error) {
	if id, ok := strings.CutPrefix(ref, "sha256:"); ok && len(id) == 64 {
		return ref, "", nil
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", "", fmt.Errorf("%w: image: %q: %w", container.ErrSpec, ref, err)
	}
	repo = named.Name()
	if digested, ok := named.(reference.Digested); ok {
		// A tag beside a digest says nothing more, and engines differ in what they do with it.
		return repo + "@" + digested.Digest().String(), repo, nil
	}
	return reference.TagNameOnly(named).String(), repo, nil
}

func (p *Provider) inspectImage(ctx context.Context, name, repo string, platform *ocispec.Platform) (container.Image, error) {
	var res client.ImageInspectResult
	err := p.call(ctx, "inspect image "+name, inspectTimeout, func(ctx context.Context) (err error) {
		res, err = p.cli.ImageInspect(ctx, name)
		return err
	})
	switch {
	case errdefs.IsNotFound(err):
		return container.Image{}, fmt.Errorf("inspect image %s: %w", name, container.ErrImageNotFound)
	case err != nil:
		return container.Image{}, err
	case platform != nil && (res.Os != platform.OS || res.Architecture != platform.Architecture):
		return container.Image{}, fmt.Errorf("inspect image %s: %w for %s/%s; the engine has it for %s/%s",
			name, container.ErrImageNotFound, platform.OS, platform.Architecture, res.Os, res.Architecture)
	}
	return container.Image{ID: res.ID, Digest: pickDigest(res.ID, repo, res.RepoDigests), Size: res.Size}, nil
}

// pickDigest returns the digest under which repo knows the image, else any
// repository's, else the id: an image that was never in a registry has no other name that lasts.
func pickDigest(id, repo string, digests []string) string {
	for _, d := range digests {
		if named, err := reference.ParseNormalizedNamed(d); err == nil && named.Name() == repo {
			return named.String()
		}
	}
	if len(digests) > 0 {
		return digests[0]
	}
	return id
}

// pull fetches an image. It ends with ctx, or when nothing moved for Config.PullStall.
func (p *Provider) pull(ctx context.Context, name string, platform *ocispec.Platform, say func(string)) error {
	auth, err := p.auth(name)
	if err != nil {
		return err
	}
	opts := client.ImagePullOptions{RegistryAuth: auth}
	if platform != nil {
		opts.Platforms = []ocispec.Platform{*platform}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(p.cfg.PullStall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	say("pulling " + name)
	resp, err := p.cli.ImagePull(ctx, name, opts)
	if errdefs.IsInternal(err) {
		err = p.reason(ctx, name, auth, err)
	}
	if err != nil {
		return p.pullError(ctx, name, err)
	}
	defer func() { _ = resp.Close() }()
	for msg, err := range resp.JSONMessages(ctx) {
		if err != nil {
			return p.pullError(ctx, name, err)
		}
		watchdog.Reset(p.cfg.PullStall)
		if msg.Error != nil {
			return p.pullError(ctx, name, msg.Error)
		}
		say(strings.TrimSpace(msg.Status + " " + msg.ID))
	}
	if ctx.Err() != nil {
		return p.pullError(ctx, name, context.Cause(ctx))
	}
	return nil
}

// reason asks again in another way: Docker 20.10 answers to a pull with wrong credentials as to
// any other trouble, but types the same answer of the registry to this question.
func (p *Provider) reason(ctx context.Context, name, auth string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	_, typed := p.cli.DistributionInspect(ctx, name, client.DistributionInspectOptions{EncodedRegistryAuth: auth})
	if errdefs.IsUnauthorized(typed) || errdefs.IsPermissionDenied(typed) || errdefs.IsNotFound(typed) {
		return typed
	}
	return err
}

func (p *Provider) pullError(ctx context.Context, name string, err error) error {
	domain, _, _ := strings.Cut(name, "/")
	status := 0
	if m, ok := errors.AsType[*jsonstream.Error](err); ok {
		status = m.Code
	}
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return fmt.Errorf("pull image %s: %w: nothing came from %s for %v", name, container.ErrImagePull, domain, p.cfg.PullStall)
	case ctx.Err() != nil:
		return fmt.Errorf("pull image %s: %w", name, context.Cause(ctx))
	case errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) || status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("pull image %s: %w: %w; check the worker's credentials for %s", name, container.ErrImageAuth, err, domain)
	case errdefs.IsNotFound(err) || status == http.StatusNotFound:
		return fmt.Errorf("pull image %s: %w: %w; check its spelling, and if it is private give the worker credentials for %s", name, container.ErrImageNotFound, err, domain)
	case client.IsErrConnectionFailed(err):
		return p.unavailable("pull image "+name, err)
	}
	advice := ""
	if _, ok := p.cfg.Auth[domain]; !ok {
		advice = "; if it is private, give the worker credentials for " + domain
	}
	return fmt.Errorf("pull image %s: %w: %w%s", name, container.ErrImagePull, err, advice)
}

// auth returns the credential for the registry of name, as a pull wants it. None is fine.
func (p *Provider) auth(name string) (string, error) {
	domain, _, _ := strings.Cut(name, "/")
	a, ok := p.cfg.Auth[domain]
	if !ok {
		return "", nil
	}
	s, err := authconfig.Encode(registry.AuthConfig{
		Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, ServerAddress: domain,
	})
	if err != nil {
		return "", fmt.Errorf("encode credentials for %s: %w", domain, err)
	}
	return s, nil
}
