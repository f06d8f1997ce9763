package s3gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slipway/sync/s3store/s3gateway"
	"slipway/test/eventually"
)

func TestMain(m *testing.M) {
	s3gateway.Main()
	if dir := os.Getenv("GATEWAY_TEST_PARENT"); dir != "" {
		parent(dir)
		return
	}
	os.Exit(m.Run())
}

// parent starts a gateway, says where, and waits to be killed.
func parent(dir string) {
	g, err := s3gateway.Start(context.Background(), s3gateway.Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println(strings.TrimPrefix(g.Endpoint, "http://"))
	select {}
}

func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestClose(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	g, err := s3gateway.Start(t.Context(), s3gateway.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(g.Endpoint, "http://")
	if !answers(addr) {
		t.Errorf("%s does not answer after Start", addr)
	}
	if now, err := os.Getwd(); err != nil || now != wd {
		t.Errorf("working directory: got %s, %v, want %s", now, err, wd)
	}
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if answers(addr) {
		t.Errorf("%s answers after Close", addr)
	}
	if err := g.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

// TestParentKilled: nothing may be left when the program is killed.
func TestParentKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_PARENT="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	addr = strings.TrimSpace(addr)
	if err != nil || !answers(addr) {
		t.Fatalf("child reported %q, %v: no server", addr, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	eventually.True(t, 10*time.Second, "the server is gone", func() bool { return !answers(addr) })
}

func TestBadOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		opts s3gateway.Options
		want string
	}{
		"no folder":   {s3gateway.Options{}, "Options.Dir"},
		"bad address": {s3gateway.Options{Dir: t.TempDir(), Addr: "nonsense"}, "nonsense"},
		"port taken":  {s3gateway.Options{Dir: t.TempDir(), Addr: taken.Addr().String()}, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := s3gateway.Start(t.Context(), c.opts)
			if err == nil {
				t.Fatal(g.Close())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %q, want one that names %q", err, c.want)
			}
		})
	}
}
