package testimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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

// Ensure makes sure that the engine has the image, named by its tag or short
// name, in the way that SLIPWAY_IMAGES says. It is idempotent, quick when there is
// nothing to do, and safe for concurrent use.
func Ensure(ctx context.Context, name string) error {
	_, err := Provide(ctx, name)
	return err
}

// one at a time: two tests must not build the same image side by side on two cores.
var one sync.Mutex

// Provide is Ensure that tells what it did, in a few words.
func Provide(ctx context.Context, name string) (did string, err error) {
	one.Lock()
	defer one.Unlock()
	img, err := find(name)
	if err != nil {
		return "", err
	}
	mode, err := modeFromEnv()
	if err != nil {
		return "", err
	}
	did, err = img.provide(ctx, mode)
	if err != nil {
		return "", fmt.Errorf("provide image %s: %w", img.Ref, err)
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

// provide does what Provide promises. Whether an image that is there will do
// depends on who made it: ours must be of the present recipe, a pulled one serves
// unless a build was asked for.
func (img Image) provide(ctx context.Context, mode Mode) (string, error) {
	arch, err := engineArch(ctx)
	if err != nil {
		return "", err
	}
	there, key, err := inspect(ctx, img.Ref)
	if err != nil {
		return "", err
	}
	pulled := there && key == "" && img.Pull != ""
	if pulled && mode != Build {
		return "was there, from a registry", nil
	}
	var pullErr error
	if mode == Pull && img.Pull != "" {
		return "pulled", pull(ctx, img)
	}
	r, recipeErr := img.recipe(ctx, arch)
	if recipeErr == nil && there && key == r.digest() {
		return "was there, built before", nil
	}
	if mode == Auto && img.Pull != "" {
		if pullErr = pull(ctx, img); pullErr == nil {
			return "pulled", nil
		}
	}
	if recipeErr != nil {
		return "", errors.Join(pullErr, recipeErr)
	}
	if err := build(ctx, img.Ref, arch, r); err != nil {
		return "", errors.Join(pullErr, err)
	}
	return "built: " + r.from, nil
}
