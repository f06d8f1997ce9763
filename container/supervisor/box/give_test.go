//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/container/supervisor"
	"slipway/container/supervisor/box/internal/boxtest"
)

// What lies in the workspace before the first command becomes the commands' user's, whoever of the image owned it. A link is
// not followed.
func TestContentOfTheImage(t *testing.T) {
	boxtest.NeedsRoot(t)
	boxtest.NeedsShield(t)
	r, conn := launchBox(t, true)
	work := filepath.Join(r.root, "work")
	outside := filepath.Join(r.root, "tmp", "outside")
	private, locked := filepath.Join(work, "private/deep"), filepath.Join(work, "locked")
	err := errors.Join(
		os.MkdirAll(private, 0o755),
		os.Mkdir(locked, 0o755),
		os.WriteFile(filepath.Join(work, "of root"), nil, 0o600),
		os.WriteFile(filepath.Join(private, "file"), nil, 0o600),
		os.WriteFile(outside, nil, 0o600),
		os.Symlink(boxRoot+"/tmp/outside", filepath.Join(work, "link")),
		os.Chown(filepath.Join(private, "file"), 4321, 4321),
		os.Chmod(filepath.Dir(private), 0o700), os.Chown(filepath.Dir(private), 4321, 4321),
		os.Chmod(private, 0o700), os.Chown(private, 4322, 4322),
		os.Chmod(locked, 0), os.Chown(locked, 4321, 4321),
	)
	if err != nil {
		t.Fatal(err)
	}
	if r.Session, err = supervisor.Connect(t.Context(), conn, r.config()); err != nil {
		t.Fatalf("Connect: %v; it said: %s", err, r.said)
	}
	t.Cleanup(func() { _ = r.Close(); r.wait() })
	x, out := r.run(`stat -c '%u:%g %n' . 'of root' private private/deep private/deep/file locked link; chmod 700 locked && ls locked && stat -c %u $HOME/outside`)
	want := []string{".", "of root", "private", "private/deep", "private/deep/file", "locked", "link"}
	for i, name := range want {
		want[i] = itoa(jobUID) + ":" + itoa(jobGID) + " " + name
	}
	want = append(want, "0")
	if x.Code != 0 || strings.TrimSpace(out) != strings.Join(want, "\n") {
		t.Errorf("got %+v:\n%s\nwant\n%s", x, out, strings.Join(want, "\n"))
	}
}
