// Package selfexec copies the running test's program to another place, where the test
// starts it as another process or another user.
package selfexec

import (
	"os"
	"os/exec"
	"testing"
)

// Copy copies the running test's program to path, executable by everybody. A failure ends t.
//
// A child process writes the file. If the test wrote it itself, starting it could fail with "text file busy": another
// test of this process may fork while the file is open, and its child holds the file open for writing until it has
// executed its own program (golang.org/issue/22315).
func Copy(t testing.TB, path string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("install", "-m", "755", program, path).CombinedOutput(); err != nil {
		t.Fatalf("copy the test's program: %v\n%s", err, out)
	}
}
