// Package self gives a test its own program as a file elsewhere, to be run there as another process or another user.
package self

import (
	"os"
	"os/exec"
	"testing"
)

// Copy puts the running test's program at path, executable by everybody.
//
// A child process writes it. Written by the test, it could not always be run ("text file busy"): while it is open, a
// test beside this one may fork, and until that child has become another program it holds the file open for writing
// (golang.org/issue/22315).
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
