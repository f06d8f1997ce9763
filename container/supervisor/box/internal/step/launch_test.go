//go:build linux

package step

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/internal/wire"
)

// programs makes a folder with a bin of programs and of what looks like one.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var errs []error
	for _, d := range []string{"bin", "closed", "bin/folder"} {
		errs = append(errs, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	for name, mode := range map[string]os.FileMode{"bin/good": 0o755, "bin/plain": 0o644, "closed/hidden": 0o755} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode))
	}
	errs = append(errs, os.Chmod(filepath.Join(dir, "closed"), 0o700))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A program is looked up in the command's PATH with the rights of its user, and a failure tells what to look at.
func TestResolve(t *testing.T) {
	dir := programs(t)
	for _, tt := range []struct {
		name, program, in, path string
		code                    int
		want                    string // the path, or a part of the reason
	}{
		{"in PATH", "good", "", "/none:" + dir + "/bin", 0, dir + "/bin/good"},
		{"in a PATH relative to the folder", "good", "", "bin", 0, dir + "/bin/good"},
		{"an empty element of PATH is the folder", "good", "bin", "/none:", 0, dir + "/bin/good"},
		{"by a path", "./good", "bin", "", 0, "./good"},
		{"by an absolute path", dir + "/bin/good", "", "", 0, dir + "/bin/good"},
		{"not in PATH", "none", "", dir + "/bin", CodeNotFound, "none: not found in PATH"},
		{"without PATH", "good", "", "", CodeNotFound, "good: not found in PATH"},
		{"in PATH, without a mode for it", "plain", "", dir + "/bin", CodeNotExecutable, "plain: permission denied"},
		{"a folder in PATH", "folder", "", dir + "/bin", CodeNotExecutable, "folder: permission denied"},
		{"by a path, missing", "./none", "bin", "", CodeNotFound, "./none: not found"},
		{"by a path below a file", "./good/x", "bin", "", CodeNotFound, "./good/x: not found"},
		{"by a path, without a mode for it", "./plain", "bin", "", CodeNotExecutable, "./plain: permission denied"},
		{"the folder is missing", "good", "none", dir + "/bin", CodeNotExecutable, "working folder " + dir + "/none: no such file"},
		{"the folder is a file", "good", "bin/good", dir + "/bin", CodeNotExecutable, "not a folder"},
	} {
		cmd := wire.Command{Args: []string{tt.program}, Dir: Join(dir, tt.in)}
		if tt.path != "" {
			cmd.Env = []string{"HOME=/", "PATH=" + tt.path}
		}
		path, code, reason := resolve(cmd)
		if got := path + reason; code != tt.code || !strings.Contains(got, tt.want) || (reason == "") != (tt.code == 0) {
			t.Errorf("%s: got path %q, code %d, reason %q; want %d, %q", tt.name, path, code, reason, tt.code, tt.want)
		}
	}
}

// A folder of PATH that the user may not enter is passed by, as a shell does.
func TestResolveAsUser(t *testing.T) {
	boxtest.NeedsRoot(t)
	dir := programs(t)
	look := func(program, path string) (code int, reason string) {
		err := privs.AsUser(54321, 54321, func() error {
			_, code, reason = resolve(wire.Command{Args: []string{program}, Dir: dir, Env: []string{"PATH=" + path}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return code, reason
	}
	if code, reason := look("hidden", dir+"/closed:"+dir+"/bin"); code != CodeNotFound {
		t.Errorf("a program in a closed folder: got %d, %q; want %d", code, reason, CodeNotFound)
	}
	if code, reason := look("good", dir+"/closed:"+dir+"/bin"); code != 0 {
		t.Errorf("a program behind a closed folder: got %d, %q; want it found", code, reason)
	}
	if code, reason := look("/bin/sh", ""); code != 0 {
		t.Errorf("a program beside the folder: got %d, %q; want it found", code, reason)
	}
	own := dir
	dir += "/closed"
	if code, reason := look("/bin/sh", ""); code != CodeNotExecutable || !strings.Contains(reason, "working folder "+dir+": permission denied") {
		t.Errorf("a folder that the user may not enter: got %d, %q; want the folder named, not the program", code, reason)
	}
	dir = own
	if code, reason := look(dir+"/closed/hidden", ""); code != CodeNotExecutable || !strings.Contains(reason, "permission denied") {
		t.Errorf("a closed path: got %d, %q; want permission denied", code, reason)
	}
}

// withoutLoader is a program whose loader is missing, empty if this machine has none that could be made one.
func withoutLoader(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), "/ld-linux", "/no-linux", 1)
	if changed == string(b) {
		return ""
	}
	return changed
}

// launch does not start what it can't.
func TestLaunchFails(t *testing.T) {
	dir := programs(t)
	for _, tt := range []struct {
		name, content string
		code          int
		want          string
	}{
		{"script", "#!/no/interpreter -x\n", CodeNotFound, `interpreter was not found: "/no/interpreter"`},
		{"spaced", "#! /no/interpreter", CodeNotFound, `"/no/interpreter"`},
		{"windows", "#!/bin/sh\r\necho x\r\n", CodeNotFound, `"/bin/sh\r"`},
		{"text", "hello\n", CodeNotExecutable, "neither a program for this machine nor a script"},
		{"dynamic", withoutLoader(t), CodeNotFound, "its loader was not found"},
	} {
		if tt.content == "" {
			continue
		}
		path := filepath.Join(dir, "bin", tt.name)
		if err := os.WriteFile(path, []byte(tt.content), 0o755); err != nil {
			t.Fatal(err)
		}
		own := wire.Command{Args: []string{"./bin/" + tt.name}, Dir: dir, UID: os.Geteuid(), GID: os.Getegid()}
		if pid, code, reason := launch(own, []int{0, 1, 2}); pid != 0 || code != tt.code || !strings.Contains(reason, tt.want) {
			t.Errorf("%s: got pid %d, code %d, %q; want %d, %q", tt.name, pid, code, reason, tt.code, tt.want)
		}
	}
	if os.Geteuid() == 0 {
		return
	}
	other := wire.Command{Args: []string{"true"}, Dir: dir, UID: 54321, GID: 54321}
	if pid, code, reason := launch(other, []int{0, 1, 2}); pid != 0 || code != CodeNotExecutable || !strings.Contains(reason, "can't change the user") {
		t.Errorf("another user: got pid %d, code %d, %q; want 126 and the reason", pid, code, reason)
	}
}

// Descriptors arrive with the frame that they were sent with, however large it is and however slowly it is read.
func TestControl(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetNonblock(pair[0], true)
	box := os.NewFile(uintptr(pair[0]), "box")
	defer box.Close()
	defer unix.Close(pair[1])
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	large := []byte(strings.Repeat("x", wire.MaxPayload))
	sent := make(chan error, 1)
	go func() {
		fd := int(file.Fd())
		err := sendFDs(box, wire.AppendFrame(nil, wire.Open, 0, large), fd, fd, fd)
		if err == nil {
			err = sendFDs(box, wire.AppendFrame(nil, wire.Cancel, 0, nil))
		}
		sent <- err
	}()
	s := &step{control: &fdReader{fd: pair[1]}}
	o, err := s.receive()
	if err != nil || len(o.frame.Payload) != len(large) || len(o.fds) != 3 {
		t.Fatalf("got %d bytes, %d descriptors, %v; want %d, 3", len(o.frame.Payload), len(o.fds), err, len(large))
	}
	for _, fd := range o.fds {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d: flags %d, %v; want it closed at exec", fd, flags, err)
		}
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Errorf("descriptor %d: %v", fd, err)
		}
		_ = unix.Close(fd)
	}
	if o, err = s.receive(); err != nil || o.frame.Type != wire.Cancel || len(o.fds) != 0 {
		t.Errorf("got %+v, %v; want Cancel without descriptors", o, err)
	}
	if err := <-sent; err != nil {
		t.Errorf("send: %v", err)
	}
	if b, _ := os.ReadFile(file.Name()); string(b) != "xxx" {
		t.Errorf("the file: got %q, want what was written through three descriptors", b)
	}
}
