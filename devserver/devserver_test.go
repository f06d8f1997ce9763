//go:build linux || darwin

package devserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slipway/devserver"
	"slipway/job/natsqueue"
	"slipway/test/devprogram"
	"slipway/test/eventually"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("DEVSERVER_TEST_PARENT"); dir != "" {
		parent(dir, os.Getenv("DEVSERVER_TEST_PROGRAMS"))
		return
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// parent starts the servers, says where, and waits to be killed.
func parent(dir, programs string) {
	s, err := devserver.Start(context.Background(), both(dir, programs))
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println(strings.TrimPrefix(s.Endpoint, "http://"), strings.TrimPrefix(s.NATSURL, "nats://"))
	select {}
}

func bothPrograms(t *testing.T) string {
	t.Helper()
	return devprogram.Folder(t, devprogram.NATS, devprogram.S3)
}

func both(dir, programs string) devserver.Options {
	return devserver.Options{
		Programs: programs, NATS: &devserver.NATS{Dir: filepath.Join(dir, "nats")}, S3: &devserver.S3{Dir: filepath.Join(dir, "s3")},
	}
}

func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// TestStart: both servers answer after Start and neither does after Close, and the caller's working folder is what it was.
func TestStart(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s, err := devserver.Start(t.Context(), both(t.TempDir(), bothPrograms(t)))
	if err != nil {
		t.Fatal(err)
	}
	s3, nats := strings.TrimPrefix(s.Endpoint, "http://"), strings.TrimPrefix(s.NATSURL, "nats://")
	for name, addr := range map[string]string{"S3": s3, "NATS": nats} {
		if !answers(addr) {
			t.Errorf("%s at %q does not answer after Start", name, addr)
		}
	}
	if now, err := os.Getwd(); err != nil || now != wd {
		t.Errorf("working directory: got %s, %v, want %s", now, err, wd)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("close, twice: %v", err)
	}
	if answers(s3) || answers(nats) {
		t.Errorf("after Close: S3 answers %v, NATS answers %v, want neither", answers(s3), answers(nats))
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Close")
	}
}

// TestCloseIsOrderly: an end that was asked for is never told as one of the gateway by itself. Which of the two the child
// saw first was once left to chance.
func TestCloseIsOrderly(t *testing.T) {
	dir, programs := t.TempDir(), devprogram.Folder(t, devprogram.S3)
	for range 10 {
		s, err := devserver.Start(t.Context(), devserver.Options{Programs: programs, S3: &devserver.S3{Dir: dir}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("close: got %v, want nil", err)
		}
	}
}

// TestPrivate: without the random password nobody gets at the queue.
func TestPrivate(t *testing.T) {
	s, err := devserver.Start(t.Context(), devserver.Options{Programs: devprogram.Folder(t, devprogram.NATS), NATS: &devserver.NATS{Dir: t.TempDir(), Private: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u, err := url.Parse(s.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(url string) error {
		conn, err := natsqueue.Connect(t.Context(), natsqueue.Config{URL: url})
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := connect(s.NATSURL); err != nil {
		t.Errorf("with the password: %v", err)
	}
	if err := connect("nats://" + u.Host); err == nil {
		t.Error("connected without the password")
	}
}

// TestParentKilled: the servers end with the process that started them, however that ends.
func TestParentKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "DEVSERVER_TEST_PARENT="+t.TempDir(), "DEVSERVER_TEST_PROGRAMS="+bothPrograms(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s3, nats, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !answers(s3) || !answers(nats) {
		t.Fatalf("the parent reported %q, %v: no servers", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	eventually.True(t, 10*time.Second, "the servers are gone", func() bool { return !answers(s3) && !answers(nats) })
}

// TestBadOptions: each error names what to change.
func TestBadOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir, addr := t.TempDir(), taken.Addr().String()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts devserver.Options
		want string
	}{
		"no server":       {devserver.Options{}, "no server"},
		"no folder":       {devserver.Options{S3: &devserver.S3{}}, "S3.Dir"},
		"a file":          {devserver.Options{S3: &devserver.S3{Dir: file}}, file},
		"bad address":     {devserver.Options{NATS: &devserver.NATS{Dir: dir, Addr: "nonsense"}}, `NATS.Addr "nonsense"`},
		"half a key":      {devserver.Options{S3: &devserver.S3{Dir: dir, AccessKey: "a"}}, "S3.SecretKey"},
		"S3 port taken":   {devserver.Options{S3: &devserver.S3{Dir: dir, Addr: addr}}, "in use"},
		"NATS port taken": {devserver.Options{NATS: &devserver.NATS{Dir: dir, Addr: addr}}, addr},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.Programs = bothPrograms(t)
			s, err := devserver.Start(t.Context(), c.opts)
			if err == nil {
				t.Fatalf("started; close: %v", s.Close())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %q, want one that names %q", err, c.want)
			}
		})
	}
}

// TestNoProgram: a missing program is an error of its own, which names the program and the place. What is not asked for
// is not missing.
func TestNoProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	exe, _ := os.Executable()
	nats, folder := devprogram.Folder(t, devprogram.NATS), t.TempDir()
	if err := os.Symlink(filepath.Join(nats, devprogram.NATS), filepath.Join(folder, devprogram.NATS)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		programs string
		want     []string
		not      string
	}{
		"nowhere":     {"", []string{devprogram.NATS, devprogram.S3, filepath.Dir(exe)}, "-"},
		"given":       {"/no/such/folder", []string{"/no/such/folder/" + devprogram.NATS, "/no/such/folder/" + devprogram.S3}, "PATH"},
		"one of them": {folder, []string{filepath.Join(folder, devprogram.S3)}, devprogram.NATS},
	} {
		dir := t.TempDir()
		_, err := devserver.Start(t.Context(), both(dir, c.programs))
		if made, readErr := os.ReadDir(dir); readErr != nil || len(made) > 0 {
			t.Errorf("%s: made %v, %v, want nothing", name, made, readErr)
		}
		if !errors.Is(err, devserver.ErrNoProgram) {
			t.Errorf("%s: got error %v, want %v", name, err, devserver.ErrNoProgram)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want one that names %s", name, err, want)
			}
		}
		if c.not != "-" && strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: got error %v, want one without %s", name, err, c.not)
		}
	}
	s, err := devserver.Start(t.Context(), devserver.Options{Programs: folder, NATS: &devserver.NATS{Dir: t.TempDir()}})
	if err != nil {
		t.Fatalf("NATS alone: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestForeignProgram: what does not report is not waited for, and the other server does not go on without it.
func TestForeignProgram(t *testing.T) {
	folder := t.TempDir()
	nats := devprogram.Folder(t, devprogram.NATS)
	for name, program := range map[string]string{devprogram.NATS: filepath.Join(nats, devprogram.NATS), devprogram.S3: "/bin/false"} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	opts := both(t.TempDir(), folder)
	opts.NATS.Addr = free.Addr().String()
	_, err = devserver.Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), devprogram.S3+" ended before it listened") {
		t.Errorf("got error %v, want one that says that it ended", err)
	}
	if answers(opts.NATS.Addr) {
		t.Error("the NATS server answers after a start that failed")
	}
}

// TestOneEnds: the end of one server is told, with its name, while the other one goes on until Close.
func TestOneEnds(t *testing.T) {
	programs := bothPrograms(t)
	for _, dead := range []string{devprogram.NATS, devprogram.S3} {
		s, err := devserver.Start(t.Context(), both(t.TempDir(), programs))
		if err != nil {
			t.Fatal(err)
		}
		other := strings.TrimPrefix(s.Endpoint, "http://")
		if dead == devprogram.S3 {
			other = strings.TrimPrefix(s.NATSURL, "nats://")
		}
		select {
		case <-s.Done():
			t.Fatalf("Done is closed while both run: %v", s.Err())
		default:
		}
		if err := s.Kill(dead); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), dead) {
			t.Errorf("Err: got %v, want one that names %s", err, dead)
		}
		if !answers(other) {
			t.Errorf("without %s the other server does not answer", dead)
		}
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), dead) {
			t.Errorf("Close: got %v, want one that names %s", err, dead)
		}
		if answers(other) {
			t.Errorf("the other server answers after Close")
		}
	}
}
