package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"slipway/container"
)

// commit makes an image of what a script leaves in a container of the test's image.
func (e engine) commit(t *testing.T, script string) container.Image {
	t.Helper()
	img, err := e.cli.ContainerCommit(e.ctx, e.inContainer(t, script), client.ContainerCommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := e.cli.ImageRemove(context.WithoutCancel(e.ctx), img.ID, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return container.Image{ID: img.ID}
}

// A workspace that begins with the image's files belongs to the job's user as a whole, and two boxes do not share it. One that
// does not begins empty, at the same place.
func TestFromImage(t *testing.T) {
	e := setup(t)
	e.image = e.commit(t, `mkdir -p /testbed/.git/objects && ln -s testbed /link && cd /testbed
		echo code > code; chmod 600 code; ln -s code link; echo x > run; chmod 755 run; touch -d '2020-01-02 03:04:05' code
		mkdir private; echo s > private/s; chmod 600 private/s; chown -R 4321:4321 private; chmod 700 private`)
	spec := e.spec()
	spec.Workdir, spec.FromImage = "/testbed", true
	b := e.box(t, spec)
	const script = `find . | sort | xargs stat -c '%u:%g %a %n'; readlink link; stat -c %Y code; cat code private/s && echo more >> code && rm -r private .git && ls -A`
	want := `. 777
./.git 755
./.git/objects 755
./code 600
./link 777
./private 700
./private/s 600
./run 755`
	var lines []string
	for _, l := range strings.Split(want, "\n") {
		name, mode, _ := strings.Cut(l, " ")
		lines = append(lines, "1000:1000 "+mode+" "+name)
	}
	lines = append(lines, "code", "1577934245", "code", "s", "code", "link", "run", "")
	if exit, got := sh(t, b, script); !exit.Success() || got != strings.Join(lines, "\n") {
		t.Errorf("got %+v:\n%s\nwant\n%s", exit, got, strings.Join(lines, "\n"))
	}
	second := e.spec()
	second.Workdir, second.FromImage = "/testbed", true
	if exit, got := sh(t, e.box(t, second), "cat code; ls private"); !exit.Success() || got != "code\ns\n" {
		t.Errorf("second box: got %+v, %q; want the image's own files again", exit, got)
	}
	root := e.spec()
	root.Workdir, root.FromImage, root.Relaxed = "/link", true, []container.Relaxation{container.RelaxRootSteps}
	if exit, got := sh(t, e.box(t, root), "id -u; find . | xargs stat -c %u | sort -u"); !exit.Success() || got != "0\n0\n" {
		t.Errorf("as root, through a link of the image: got %+v, %q; want all of root", exit, got)
	}
	user := e.spec()
	user.Workdir, user.FromImage = "/link", true
	if exit, got := sh(t, e.box(t, user), "find . | xargs stat -c %u | sort -u; cat code"); !exit.Success() || got != "1000\ncode\n" {
		t.Errorf("through a link of the image: got %+v, %q; want all of the job's user", exit, got)
	}
	empty := e.spec()
	empty.Workdir = "/testbed"
	if exit, got := sh(t, e.box(t, empty), "ls -A"); !exit.Success() || got != "" {
		t.Errorf("without FromImage: got %+v, %q; want nothing", exit, got)
	}
}
