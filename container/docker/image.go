package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"slipway/container"
	"slipway/internal/hint"
)

type pullKey struct {
	name, platform string
	always         bool
}

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
	var other *otherPlatform
	if req.Pull != container.PullAlways || byID {
		img, err := p.inspectImage(ctx, name, repo, platform)
		if err == nil || !errors.Is(err, container.ErrImageNotFound) {
			return img, err
		}
		if other, _ = errors.AsType[*otherPlatform](err); req.Pull == container.PullNever || byID {
			return container.Image{}, notHere(name, other)
		}
	}
	key := pullKey{name, req.Platform, req.Pull == container.PullAlways}
	return p.pulls.do(ctx, key, req.Progress, func(ctx context.Context, say func(string)) (container.Image, error) {
		err := p.puller.pull(ctx, pulled{name: name, platform: platform}, say)
		if err != nil && other != nil {
			err = fmt.Errorf("%w; %s", err, other.Error()) // its text, not its type: the registry may come back
		}
		if err != nil {
			return container.Image{}, err
		}
		img, err := p.inspectImage(ctx, name, repo, platform)
		img.Pulled = err == nil
		return img, err
	})
}

// otherPlatform is the error of an image that the engine has for another platform only. It matches ErrImageNotFound.
type otherPlatform struct{ asked, has string }

func (o *otherPlatform) Error() string {
	return fmt.Sprintf("the engine has it for %s, the job's platform is %s", o.has, o.asked)
}

func (o *otherPlatform) Is(target error) bool { return target == container.ErrImageNotFound }

// notHere is the error of an image that may not be pulled.
func notHere(name string, other *otherPlatform) error {
	err := fmt.Errorf("find image %s on the engine: %w", name, container.ErrImageNotFound)
	if other != nil {
		err = fmt.Errorf("%w: %w", err, other)
	}
	return hint.With(err, "load it there, or use another pull policy than never")
}

// canonicalImage spells the reference out, so that "cafe" can't mean the image whose id begins with it. A bare id
// keeps its name and has no repository.
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
		return container.Image{}, fmt.Errorf("inspect image %s: %w", name, &otherPlatform{asked: platformText(platform), has: res.Os + "/" + res.Architecture})
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
