package testimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// debianPackage returns a folder with the files of a package of this machine's Debian, or of a distribution made from
// it. Nothing is installed, and the user need not be root: apt fetches the package by the machine's own sources and
// keys, and it is unpacked into the user's cache, where it serves the next time.
func debianPackage(ctx context.Context, name string) (string, error) {
	cache, err := cacheDir("packages")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name+"-"+runtime.GOARCH)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("fetch Debian's package %s: this machine has no %s", name, tool)
		}
	}
	fresh, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return "", fmt.Errorf("fetch Debian's package %s: %w", name, err)
	}
	defer os.RemoveAll(fresh)
	files, err := aptFetch(ctx, fresh, name)
	if err != nil {
		return "", fmt.Errorf("fetch Debian's package %s: %w", name, err)
	}
	// Another process may have been faster; its files are the same.
	if err := os.Rename(files, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep Debian's package %s: %w", name, err)
	}
	return dir, nil
}

// What apt writes lies in one folder. A root's apt fetches as another user, who may not write there.
const (
	aptConfig = `APT::Sandbox::User "";
Dir::Cache %[1]q;
`
	// With a list of packages of its own, too. What the machine does after an update, such as telling its
	// desktop, is left out: it is not the machine that was updated.
	aptOwnList = `Dir::State %[1]q;
Dir::State::status "/var/lib/dpkg/status";
Acquire::Languages "none";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`
)

// aptFetch downloads and unpacks a package below dir, and returns the folder of its files.
func aptFetch(ctx context.Context, dir, name string) (string, error) {
	for _, d := range []string{"lists/partial", "archives/partial", "download"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return "", err
		}
	}
	download := filepath.Join(dir, "download")
	apt := func(config string, args ...string) error {
		file := filepath.Join(dir, "apt.conf")
		if err := os.WriteFile(file, fmt.Appendf(nil, config, dir), 0o600); err != nil {
			return err
		}
		_, err := run(ctx, nil, download, "apt-get", append([]string{"-qq", "--config-file=" + file}, args...)...)
		return err
	}
	// The machine's list saves fetching one, if it is there and not out of date.
	if err := apt(aptConfig, "download", name); err != nil {
		if err := apt(aptConfig+aptOwnList, "update"); err != nil {
			return "", err
		}
		if err := apt(aptConfig+aptOwnList, "download", name); err != nil {
			return "", err
		}
	}
	debs, err := filepath.Glob(filepath.Join(download, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download left %d packages, want 1", len(debs))
	}
	files := filepath.Join(dir, "files")
	_, err = run(ctx, nil, "", "dpkg-deb", "--extract", debs[0], files)
	return files, err
}

// cacheDir returns the folder of that name in the user's cache, and makes it.
func cacheDir(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder: %w: set HOME", err)
	}
	dir := filepath.Join(cache, "slipway", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a cache folder: %w", err)
	}
	return dir, nil
}
