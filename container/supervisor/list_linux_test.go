package supervisor_test

import (
	"errors"
	"strings"
	"testing"

	"slipway/container"
)

// TestLongList: a job can't make the caller of List hold as much as it likes.
func TestLongList(t *testing.T) {
	r := setup(t)
	deep := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 200)+"/", 18), "/")
	if x, out := r.sh("mkdir -p " + deep + " && cd " + deep + " && seq 20000 | xargs touch"); x.Code != 0 {
		t.Fatalf("make the files: exit code %d: %s", x.Code, out)
	}
	if list, err := r.Files().List(t.Context(), deep); !errors.Is(err, container.ErrTooLarge) {
		t.Errorf("List: got %d entries, error %v; want %v", len(list), err, container.ErrTooLarge)
	}
	if _, err := r.Files().Stat(t.Context(), deep); err != nil { // the box goes on
		t.Errorf("Stat: %v", err)
	}
}
