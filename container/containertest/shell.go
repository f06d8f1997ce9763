package containertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/test/eventually"
)

func testSignals(t *testing.T, k kit) {
	b := k.box(t)
	for signal, code := range map[string]int{"KILL": 137, "TERM": 143, "SEGV": 139} {
		exit, _ := exec(t, b, sh("kill -"+signal+" $$"))
		if exit.Code != code || exit.Signal != "SIG"+signal || exit.TimedOut || exit.Canceled {
			t.Errorf("%s: got %+v, want code %d", signal, exit, code)
		}
	}
	if exit, _ := exec(t, b, sh("exit 137")); exit.Code != 137 || exit.Signal != "" {
		t.Errorf("exit 137: got %+v, want the code and no signal", exit)
	}
}

func testStreams(t *testing.T, k kit) {
	b := k.box(t)
	const lines = 20000
	exit, out := exec(t, b, sh(fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo out $i; echo err $i >&2; i=$((i+1)); done", lines)))
	for name, text := range map[string]string{"out": out.stdout.String(), "err": out.stderr.String()} {
		i := 0
		for line := range strings.Lines(text) {
			if want := fmt.Sprintf("%s %d\n", name, i); line != want {
				t.Fatalf("line %d of %s: got %q, want %q", i, name, line, want)
			}
			i++
		}
		if i != lines {
			t.Errorf("%s: got %d lines, want %d", name, i, lines)
		}
	}
	if got, want := exit.Output, int64(out.stdout.Len()+out.stderr.Len()); got != want {
		t.Errorf("counted %d bytes, got %d", got, want)
	}
	exit, out = exec(t, b, sh("dd if=/dev/zero bs=65536 count=512 2>/dev/null"))
	if out.stdout.Len() != 32<<20 || exit.Output != 32<<20 {
		t.Errorf("32 MiB: got %d bytes, Exit.Output %d; want %d", out.stdout.Len(), exit.Output, 32<<20)
	}
	if exit.Duration <= 0 || exit.CPU <= 0 || exit.MaxRSS <= 0 {
		t.Errorf("usage: got %+v, want Duration, CPU and MaxRSS above 0", exit)
	}
}

// testGrace: TERM reaches the tree, and what does not end by it is killed at the end of the grace.
func testGrace(t *testing.T, k kit) {
	polite := sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	stubborn := sh("trap '' TERM; echo ready; while :; do sleep 0.05; done")
	t.Run("handles TERM", func(t *testing.T) {
		t.Parallel()
		b := k.box(t)
		eventually.Doubling(t, "the command is ready", func(limit time.Duration) bool {
			polite.Timeout, polite.Grace = limit, 10*time.Second
			exit, out := exec(t, b, polite)
			got := out.stdout.String()
			if exit.TimedOut && got == "" {
				return false
			}
			if !exit.TimedOut || exit.Code != 3 || got != "ready\nbye\n" {
				t.Errorf("got %+v, %q; want it timed out with code 3 and %q", exit, got, "ready\nbye\n")
			}
			return true
		})
	})
	t.Run("ignores TERM", func(t *testing.T) {
		t.Parallel()
		b := k.box(t)
		eventually.Doubling(t, "the command is ready", func(limit time.Duration) bool {
			stubborn.Timeout, stubborn.Grace = limit, 500*time.Millisecond
			begin := time.Now()
			exit, out := exec(t, b, stubborn)
			took := time.Since(begin)
			if exit.TimedOut && out.stdout.String() == "" {
				return false
			}
			if least := limit + stubborn.Grace; !exit.TimedOut || exit.Signal != "SIGKILL" || took < least || took > limit+eventually.Patience {
				t.Errorf("got %+v after %v; want it timed out by SIGKILL after %v, and within %v", exit, took, least, limit+eventually.Patience)
			}
			return true
		})
	})
}

// orphans start processes that leave the session, the parent and the signal behind, and write
// to a file each for as long as they live.
const orphans = `setsid sh -c 'trap "" TERM HUP; while :; do echo >>alive-setsid; sleep 0.05; done' &
nohup sh -c 'while :; do echo >>alive-nohup; sleep 0.05; done' >/dev/null 2>&1 &
(setsid setsid sh -c 'while :; do echo >>alive-double; sleep 0.05; done' &) &
while [ ! -e alive-setsid ] || [ ! -e alive-nohup ] || [ ! -e alive-double ]; do sleep 0.05; done
echo started
`

func testTree(t *testing.T, k kit) {
	b := k.box(t)
	eventually.Doubling(t, "the tree has started", func(limit time.Duration) bool {
		cmd := sh(orphans + "sleep 600")
		cmd.Timeout, cmd.Grace = limit, 100*time.Millisecond
		begin := time.Now()
		exit, out := exec(t, b, cmd)
		if exit.TimedOut && out.stdout.String() == "" {
			for _, name := range []string{"alive-setsid", "alive-nohup", "alive-double"} {
				must(t, "delete", b.Files().Delete(t.Context(), name))
			}
			return false
		}
		if !exit.TimedOut || out.stdout.String() != "started\n" {
			t.Errorf("got %+v, %q; want it timed out after %q", exit, out.stdout.String(), "started\n")
		}
		if took := time.Since(begin); took > limit+eventually.Patience {
			t.Errorf("took %v, want at most %v", took, limit+eventually.Patience)
		}
		nothingAlive(t, b)
		return true
	})
}

func testLeftovers(t *testing.T, k kit) {
	b := k.box(t)
	begin := time.Now()
	exit, out := exec(t, b, sh(orphans))
	if exit.Code != 0 || exit.Leftovers < 3 || out.stdout.String() != "started\n" {
		t.Errorf("got %+v, %q, want at least 3 leftovers", exit, out.stdout.String())
	}
	if took := time.Since(begin); took > eventually.Patience {
		t.Errorf("took %v, want at most %v: the leftovers are not waited for", took, eventually.Patience)
	}
	nothingAlive(t, b)
}

// testLateOutput: a command that prints through a reader is not over before the reader has printed all, to stdout or stderr.
func testLateOutput(t *testing.T, k kit) {
	b := k.box(t)
	const lines = 60
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	want.WriteString("1 FAILED\n")
	script := fmt.Sprintf(`rm -f pipe; mkfifo pipe
while IFS= read -r line; do sleep 0.01; printf "%%s\n" "$line" >&$to; done < pipe &
exec > pipe 2>&1
i=0; while [ $i -lt %d ]; do i=$((i+1)); echo "line $i"; done
echo "1 FAILED"
exit 5`, lines)
	for to, text := range map[string]func(*output) string{
		"1": func(o *output) string { return o.stdout.String() },
		"2": func(o *output) string { return o.stderr.String() },
	} {
		cmd := sh(script)
		cmd.Env = map[string]string{"to": to}
		exit, out := exec(t, b, cmd)
		got := text(out)
		if exit.Code != 5 || exit.Leftovers != 0 || exit.Cut || got != want.String() {
			t.Errorf("to file %s: got %+v, %d lines that end with %q; want code 5, all %d, and nothing cut",
				to, exit, strings.Count(got, "\n"), got[max(0, len(got)-30):], lines+1)
		}
	}
	eventually.Doubling(t, "the command is over before its timeout", func(limit time.Duration) bool {
		cmd := sh("while :; do echo more; sleep 0.05; done & exit 6")
		cmd.Timeout = limit
		exit, _ := exec(t, b, cmd)
		if exit.TimedOut {
			return false
		}
		if exit.Code != 6 || exit.Leftovers == 0 || !exit.Cut {
			t.Errorf("one that prints for ever: got %+v; want code 6, leftovers, and the output cut", exit)
		}
		return true
	})
}

func nothingAlive(t *testing.T, b container.Sandbox) {
	t.Helper()
	before, err := b.Files().List(t.Context(), ".")
	must(t, "list", err)
	if len(before) != 3 {
		t.Errorf("got %d files, want one of each orphan", len(before))
	}
	pause(t, 500*time.Millisecond)
	for _, i := range before {
		now, err := b.Files().Stat(t.Context(), i.Path)
		must(t, "stat", err)
		if now.Size != i.Size {
			t.Errorf("%s: got %d bytes, then %d; want no process that writes it", i.Path, i.Size, now.Size)
		}
	}
}

func testFilesOfCommands(t *testing.T, k kit) {
	ctx, b := t.Context(), k.box(t)
	f := b.Files()
	must(t, "write", f.Write(ctx, "in", strings.NewReader("from outside"), 0o644))
	exit, out := exec(t, b, sh(`cat in; echo more >in; mkdir -p d/e; echo x >d/e/x; ln -s /etc/passwd link; ln -s d dlink; mkfifo fifo; chmod 0750 d/e/x`))
	if !exit.Success() || out.stdout.String() != "from outside" {
		t.Fatalf("got %+v, stdout %q, stderr %q; want success and %q", exit, out.stdout.String(), out.stderr.String(), "from outside")
	}
	if got := read(t, f, "in"); got != "more\n" {
		t.Errorf("in: got %q, want %q", got, "more\n")
	}
	for path, typ := range map[string]container.FileType{
		"d": container.TypeDir, "d/e/x": container.TypeFile, "link": container.TypeSymlink, "fifo": container.TypeOther,
	} {
		info, err := f.Stat(ctx, path)
		if err != nil || info.Type != typ {
			t.Errorf("%s: got %c, %v, want %c", path, info.Type, err, typ)
		}
	}
	begin := time.Now()
	for _, path := range []string{"link", "fifo", "d"} {
		_, err := f.Read(ctx, path, &strings.Builder{}, 0)
		is(t, "read "+path, err, container.ErrNotRegular, container.ErrPath)
	}
	for _, path := range []string{"dlink/e/x", "link/x"} {
		_, err := f.Read(ctx, path, &strings.Builder{}, 0)
		is(t, "read "+path, err, container.ErrPath, container.ErrNotFound)
		is(t, "write "+path, f.Write(ctx, path, strings.NewReader("x"), 0o644), container.ErrPath, container.ErrExists)
	}
	if took := time.Since(begin); took > eventually.Patience {
		t.Errorf("reads of special files: took %v, want at most %v", took, eventually.Patience)
	}
	if got := read(t, f, "d/e/x"); got != "x\n" {
		t.Errorf("the file behind a link: got %q, want %q", got, "x\n")
	}
	must(t, "delete a link", f.Delete(ctx, "dlink"))
	must(t, "delete a fifo", f.Delete(ctx, "fifo"))
	must(t, "delete a tree", f.Delete(ctx, "d"))
}
