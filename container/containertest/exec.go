package containertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/container"
	"slipway/test/eventually"
)

func testExec(t *testing.T, k kit) {
	spec := k.spec()
	spec.Env = map[string]string{"FROM_BOX": "1", "BOTH": "box"}
	b := k.create(t, spec)
	must(t, "start", b.Start(t.Context()))
	must(t, "mkdir", b.Files().Mkdir(t.Context(), "sub", 0o755))
	workdir := b.Info().Workdir
	tests := []struct {
		name string
		cmd  container.Command
		code int
		want string
	}{
		{"true", container.Command{Args: []string{"true"}}, 0, ""},
		{"false", container.Command{Args: []string{"false"}}, 1, ""},
		{"arguments are not split", container.Command{Args: []string{"echo", "a  b", "$HOME", "'c'"}}, 0, "a  b $HOME 'c'\n"},
		{"stdin", container.Command{Args: []string{"cat"}, Stdin: []byte("one\ntwo")}, 0, "one\ntwo"},
		{"no stdin is its end", container.Command{Args: []string{"cat"}}, 0, ""},
		{"workspace", container.Command{Args: []string{"pwd"}}, 0, workdir + "\n"},
		{"relative folder", container.Command{Args: []string{"pwd"}, Dir: "sub"}, 0, workdir + "/sub\n"},
		{"absolute folder", container.Command{Args: []string{"pwd"}, Dir: workdir + "/sub"}, 0, workdir + "/sub\n"},
		{"not found", container.Command{Args: []string{"no-such-program"}}, 127, ""},
		{"not executable", container.Command{Args: []string{"/"}}, 126, ""},
	}
	for _, tt := range tests {
		exit, out := exec(t, b, tt.cmd)
		if exit.Code != tt.code || out.stdout.String() != tt.want {
			t.Errorf("%s: got %d %q, want %d %q", tt.name, exit.Code, out.stdout.String(), tt.code, tt.want)
		}
		if started := exit.Code < 126; started != (exit.Error == "") {
			t.Errorf("%s: got error %q with code %d, want an error with 126 and 127 only", tt.name, exit.Error, exit.Code)
		}
		if got, want := exit.Output, int64(out.stdout.Len()+out.stderr.Len()); got != want {
			t.Errorf("%s: got Exit.Output %d, want %d: the bytes that came", tt.name, got, want)
		}
		if exit.TimedOut || exit.Canceled || exit.OOM || exit.Leftovers != 0 || exit.Success() != (tt.code == 0) {
			t.Errorf("%s: got %+v, want success %t, and no TimedOut, Canceled, OOM, Leftovers", tt.name, exit, tt.code == 0)
		}
	}
	testEnv(t, b)
	testLargeStdin(t, b)
}

func testEnv(t *testing.T, b container.Sandbox) {
	t.Helper()
	_, out := exec(t, b, container.Command{Args: []string{"env"}, Env: map[string]string{"BOTH": "command", "EMPTY": "", "LINES": "a\tb"}})
	have := map[string]bool{}
	for line := range strings.Lines(out.stdout.String()) {
		have[strings.TrimSuffix(line, "\n")] = true
	}
	for _, want := range []string{"FROM_BOX=1", "BOTH=command", "EMPTY=", "LINES=a\tb", "CI=true"} {
		if !have[want] {
			t.Errorf("got environment %q, want %q in it", out.stdout.String(), want)
		}
	}
	for _, name := range []string{"PATH=", "HOME=", "LANG="} {
		if !strings.Contains("\n"+out.stdout.String(), "\n"+name) {
			t.Errorf("got environment %q, want %s in it", out.stdout.String(), name)
		}
	}
}

func testLargeStdin(t *testing.T, b container.Sandbox) {
	t.Helper()
	in := make([]byte, 3<<20)
	_, _ = rand.Read(in) // never fails
	exit, out := exec(t, b, container.Command{Args: []string{"cat"}, Stdin: in})
	if !exit.Success() || out.stdout.String() != string(in) {
		t.Errorf("3 MiB through cat: got %d bytes and %+v, want the same %d bytes and success", out.stdout.Len(), exit, len(in))
	}
	exit, _ = exec(t, b, container.Command{Args: []string{"true"}, Stdin: in})
	if !exit.Success() {
		t.Errorf("stdin that nobody reads: got %+v, want success", exit)
	}
}

func testUsers(t *testing.T, k kit) {
	b := k.box(t)
	for _, tt := range []struct {
		user *container.User
		want string
	}{{nil, "1000 1000"}, {&container.User{UID: 1234, GID: 4321}, "1234 4321"}} {
		_, uid := exec(t, b, container.Command{Args: []string{"id", "-u"}, User: tt.user})
		_, gid := exec(t, b, container.Command{Args: []string{"id", "-g"}, User: tt.user})
		if got := strings.TrimSpace(uid.stdout.String()) + " " + strings.TrimSpace(gid.stdout.String()); got != tt.want {
			t.Errorf("user %v: got %s, want %s", tt.user, got, tt.want)
		}
	}
}

func testBadCommands(t *testing.T, k kit) {
	b := k.box(t)
	for what, tt := range map[string]struct {
		cmd  container.Command
		want error
	}{
		"no program": {container.Command{}, container.ErrSpec},
		"zero byte":  {container.Command{Args: []string{"echo", "\x00"}}, container.ErrSpec},
		"variable":   {container.Command{Args: []string{"true"}, Env: map[string]string{"A=B": ""}}, container.ErrSpec},
		"timeout":    {container.Command{Args: []string{"true"}, Timeout: -1}, container.ErrSpec},
		"root":       {container.Command{Args: []string{"true"}, User: &container.User{}}, container.ErrDenied},
	} {
		_, err := b.Exec(t.Context(), tt.cmd)
		is(t, what, err, tt.want)
	}
	if exit, _ := exec(t, b, container.Command{Args: []string{"true"}}); !exit.Success() {
		t.Errorf("true after bad commands: got %+v, want success", exit)
	}
}

func testTimeout(t *testing.T, k kit) {
	b := k.box(t)
	begin := time.Now()
	exit, _ := exec(t, b, container.Command{Args: []string{"sleep", "600"}, Timeout: 200 * time.Millisecond})
	if !exit.TimedOut || exit.Canceled || exit.Success() || exit.Signal != "SIGKILL" || exit.Code != 137 {
		t.Errorf("without grace: got %+v, want timed out by SIGKILL", exit)
	}
	exit, _ = exec(t, b, container.Command{Args: []string{"sleep", "600"}, Timeout: 200 * time.Millisecond, Grace: time.Minute})
	if !exit.TimedOut || exit.Signal != "SIGTERM" || exit.Code != 143 {
		t.Errorf("with grace: got %+v, want timed out by SIGTERM", exit)
	}
	if took := time.Since(begin); took < 400*time.Millisecond || took > eventually.Patience {
		t.Errorf("two timeouts of 200 ms: took %v, want 400ms to %v", took, eventually.Patience)
	}
	if exit, _ := exec(t, b, container.Command{Args: []string{"true"}}); !exit.Success() {
		t.Errorf("the next command: got %+v, want success", exit)
	}
}

func testCancel(t *testing.T, k kit) {
	b := k.box(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	begin := time.Now()
	exit, err := b.Exec(ctx, container.Command{Args: []string{"sleep", "600"}, Grace: time.Minute})
	if err != nil || !exit.Canceled || exit.TimedOut || exit.Success() {
		t.Errorf("got %+v, %v, want canceled", exit, err)
	}
	if took := time.Since(begin); took > eventually.Patience {
		t.Errorf("cancel: took %v, want at most %v", took, eventually.Patience)
	}
	if exit, _ := exec(t, b, container.Command{Args: []string{"true"}}); !exit.Success() {
		t.Errorf("the next command: got %+v, want success", exit)
	}
}

func testParallel(t *testing.T, k kit) {
	const n = 8
	b := k.box(t)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, _ = b.Exec(t.Context(), container.Command{Args: []string{"sleep", "2"}})
			var got bytes.Buffer
			want := fmt.Sprintf("command %d", i)
			_, err := b.Exec(t.Context(), container.Command{
				Args: []string{"cat"}, Stdin: []byte(want), Output: func(_ container.Stream, p []byte) { got.Write(p) },
			})
			if err != nil || got.String() != want {
				t.Errorf("got %q, %v, want %q", got.String(), err, want)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took > n*time.Second {
		t.Errorf("%d sleeps of 2 s at once: took %v, want at most %v", n, took, n*time.Second)
	}
}
