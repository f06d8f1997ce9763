package testimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/test/requires"
)

// The images, as tests and docker-compose.yml name them.
const (
	NATS       = "nats:2.15.3"
	Gateway    = "versity/versitygw:v1.8.0"
	Prometheus = "prom/prometheus:v3.5.0"
	Worker     = "slipway/worker:dev"
	Shell      = "busybox:1.36"
	Golang     = "golang:1.26"
	// TestGolang is the same as Golang under a name that no registry has.
	TestGolang = "slipway-test/golang:latest"
)

// Image is one that this package can provide.
type Image struct {
	// Ref is the tag that it gets.
	Ref string
	// Name is its short name on the command line of test/image/build.
	Name string
	// Pull is what to ask the registry for. Empty: no registry has it.
	Pull string

	recipe func(ctx context.Context, arch string) (recipe, error)
}

// Images lists every image that Ensure knows.
func Images() []Image {
	return []Image{
		{NATS, "nats", NATS, natsRecipe},
		{Gateway, "versitygw", Gateway, gatewayRecipe},
		{Prometheus, "prometheus", Prometheus, prometheusRecipe},
		{Worker, "worker", "", workerRecipe},
		{Shell, "busybox", Shell, shellRecipe},
		{Golang, "golang", Golang, golangRecipe},
		{TestGolang, "test-golang", Golang, golangRecipe},
	}
}

// Mode says where images come from.
type Mode string

// The modes, as SLIPWAY_IMAGES names them.
const (
	Auto  Mode = "auto"
	Pull  Mode = "pull"
	Build Mode = "build"
)

// ErrUnavailable is matched by the error of an image that no registry gives, and whose parts this machine
// neither has nor can fetch.
var ErrUnavailable = errors.New("not to be had here")

// Ensure makes sure that the engine has the image, named by its tag or short
// name, in the way that SLIPWAY_IMAGES says. It is idempotent, quick when there is
// nothing to do, and safe for concurrent use. An image that can't be had gives ErrUnavailable,
// and is not tried again by this process.
func Ensure(ctx context.Context, name string) error {
	_, err := Provide(ctx, name)
	return err
}

// Require is Ensure for a test: it skips t if there is no engine or the image is unavailable, or fails it with CI=true.
func Require(t testing.TB, name string) {
	t.Helper()
	requires.Engine(t)
	did, err := Provide(t.Context(), name)
	if errors.Is(err, ErrUnavailable) {
		requires.Missing(t, "needs an image: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", name, did)
}

// once makes one image at a time: two tests must not build the same one side by side on two cores.
var once = struct {
	sync.Mutex
	unavailable map[string]error // by Image.Ref
}{unavailable: make(map[string]error)}

// Provide is Ensure that tells what it did, in a few words.
func Provide(ctx context.Context, name string) (did string, err error) {
	once.Lock()
	defer once.Unlock()
	img, err := find(name)
	if err != nil {
		return "", err
	}
	mode, err := modeFromEnv()
	if err != nil {
		return "", err
	}
	if err := once.unavailable[img.Ref]; err != nil {
		return "", err
	}
	did, err = img.provide(ctx, mode)
	if err != nil {
		err = fmt.Errorf("provide image %s: %w", img.Ref, err)
		if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			once.unavailable[img.Ref] = err
		}
		return "", err
	}
	return did, nil
}

func find(name string) (Image, error) {
	var known []string
	for _, img := range Images() {
		if name == img.Ref || name == img.Name {
			return img, nil
		}
		known = append(known, img.Name+" ("+img.Ref+")")
	}
	return Image{}, fmt.Errorf("provide image %q: not known; there are %s", name, strings.Join(known, ", "))
}

func modeFromEnv() (Mode, error) {
	m := Mode(os.Getenv("SLIPWAY_IMAGES"))
	if m == "" {
		return Auto, nil
	}
	if !slices.Contains([]Mode{Auto, Pull, Build}, m) {
		return "", fmt.Errorf("SLIPWAY_IMAGES=%s: must be auto, pull or build", m)
	}
	return m, nil
}

// provide does what Provide promises.
func (img Image) provide(ctx context.Context, mode Mode) (string, error) {
	arch, err := engineArch(ctx)
	if err != nil {
		return "", err
	}
	here, err := img.present(ctx, arch)
	if err != nil {
		return "", err
	}
	mustPull := mode == Pull && img.Pull != ""
	if here == pulled && mode != Build || here == current && !mustPull {
		return "was there, " + string(here), nil
	}
	var pullErr error
	if mode != Build && img.Pull != "" {
		if pullErr = pull(ctx, img); pullErr == nil || mustPull {
			return "pulled", pullErr
		}
	}
	r, err := img.recipe(ctx, arch)
	if here == outdated && errors.Is(err, ErrUnavailable) {
		return "was there, " + string(here), nil
	}
	if err != nil {
		return "", errors.Join(pullErr, err)
	}
	if err := build(ctx, img.Ref, arch, r); err != nil {
		return "", err
	}
	return "built: " + r.from, nil
}

// origin says what an image is that the engine has.
type origin string

const (
	absent   origin = ""
	pulled   origin = "from a registry"
	current  origin = "built before"
	outdated origin = "built before, of parts that are others now, or gone"
)

// present tells whether the engine has the image. One that was built must be of the present recipe. A recipe
// may have to fetch what the image is made of, so it is not asked for any other image.
func (img Image) present(ctx context.Context, arch string) (origin, error) {
	there, key, err := inspect(ctx, img.Ref)
	switch {
	case err != nil || !there:
		return absent, err
	case key == "" && img.Pull != "":
		return pulled, nil
	}
	r, err := img.recipe(ctx, arch)
	switch {
	case err == nil && key == r.digest():
		return current, nil
	case err == nil || errors.Is(err, ErrUnavailable):
		return outdated, nil
	default:
		return absent, err
	}
}
