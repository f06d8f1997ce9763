package testimage

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"slipway/test/requires"
)

// bare gives the test an empty cache, and a PATH of programs that are links to those of this machine.
func bare(t *testing.T, programs map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, target := range programs {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip("no symlinks here")
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", filepath.Join(os.Getenv("HOME"), ".cache"))
}

func TestUnavailable(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil || staticProgram(sh) == nil {
		t.Skip("needs a shell with shared libraries")
	}
	tests := []struct {
		name     string
		programs map[string]string
	}{
		{"nothing is there", nil},
		{"a busybox with shared libraries is no use in an image", map[string]string{"busybox": sh}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bare(t, tt.programs)
			got, err := findBusybox(t.Context())
			if !errors.Is(err, ErrUnavailable) {
				t.Fatalf("findBusybox = %v, %v, want ErrUnavailable", got, err)
			}
			for _, want := range []string{"no apt-get", "registry", "busybox-static"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestDebianPackage fetches a package as the user that runs the tests.
func TestDebianPackage(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_ENGINE") == "" {
		t.Skip("fetches a package: run make test")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		t.Skip("needs a distribution that has apt-get")
	}
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("needs dpkg-deb")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := debianPackage(t.Context(), "busybox-static")
	if err != nil {
		requires.Missing(t, "needs the sources of apt: "+err.Error())
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".fetch-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %q, %v", left, err)
	}
	// From here on neither apt nor the network is asked.
	cache := os.Getenv("XDG_CACHE_HOME")
	bare(t, nil)
	t.Setenv("XDG_CACHE_HOME", cache)
	got, err := findBusybox(t.Context())
	if err != nil || !strings.HasPrefix(got.path, dir) || staticProgram(got.path) != nil {
		t.Errorf("findBusybox = %v, %v, want a static program in %s", got, err, dir)
	}
	// A name that no source has ends in an error that says so, and leaves nothing.
	bare(t, map[string]string{"apt-get": apt, "dpkg-deb": dpkg})
	if dir, err := debianPackage(t.Context(), "slipway-has-no-package"); err == nil {
		t.Errorf("debianPackage = %s, want an error", dir)
	}
}

// TestRegistry pulls from a registry on this machine, and does without it once it is gone.
func TestRegistry(t *testing.T) {
	requires.Engine(t)
	ctx := t.Context()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	t.Setenv("SLIPWAY_REGISTRY", host)
	asked := false
	img := Image{
		Ref: "slipway-test/pulled:1", Name: "pulled", Pull: "slipway-test-pulled:1",
		recipe: func(context.Context, string) (recipe, error) {
			asked = true
			return recipe{}, ErrUnavailable
		},
	}
	published := host + "/library/" + img.Pull
	forget := func() {
		for _, ref := range []string{published, img.Ref} {
			_, _ = docker(context.WithoutCancel(ctx), nil, "rmi", ref) // either may be gone
		}
	}
	t.Cleanup(forget)
	publish(t, published)
	forget()

	for _, want := range []string{"pulled", "was there, from a registry"} {
		if did, err := img.provide(ctx, Auto); err != nil || did != want {
			t.Errorf("provide = %q, %v, want %q", did, err, want)
		}
	}
	if asked {
		t.Error("the recipe was asked, though the registry has the image")
	}
	forget()
	server.Close()
	if did, err := img.provide(ctx, Auto); !errors.Is(err, ErrUnavailable) || !asked || !strings.Contains(err.Error(), "docker pull") {
		t.Errorf("provide without registry = %q, %v, recipe asked: %v; want ErrUnavailable with the error of docker pull", did, err, asked)
	}
}

// publish pushes an image of one file.
func publish(t *testing.T, ref string) {
	t.Helper()
	tr := newTree()
	tr.text("etc/motd", "published\n")
	layer, err := tr.open()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	if _, err := docker(t.Context(), layer, "import", "-", ref); err != nil {
		t.Fatal(err)
	}
	if _, err := docker(t.Context(), nil, "push", "--quiet", ref); err != nil {
		t.Fatalf("push to a registry on the loopback address: %v", err)
	}
}
