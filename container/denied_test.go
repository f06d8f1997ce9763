package container

import (
	"errors"
	"strings"
	"testing"
)

func TestApplyDenies_AllAtOnce(t *testing.T) {
	_, err := Policy{Max: Resources{Memory: 1 << 30, Pids: 100}}.Apply(Spec{
		Name: "slipway-a-1", Network: NetworkOpen, User: User{0, 5}, Resources: Resources{Memory: 2 << 30, Pids: 101},
	})
	var refused Denials
	if !errors.As(err, &refused) || !errors.Is(err, ErrDenied) || len(refused) != 4 {
		t.Fatalf("got %v, want four Denials", err)
	}
	want := "not allowed by this worker's policy: network (key network_open); user (key root_steps); " +
		"resources.memory (key max.memory): 2GiB asked for, 1GiB allowed; resources.pids (key max.pids): 101 asked for, 100 allowed"
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = Policy{}.Apply(Spec{Name: "slipway-a-1", Resources: Resources{Memory: 1}})
	if want := "1B is below the least possible, 16MiB"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to contain %q", err, want)
	}
}
