package supervisor

import (
	"reflect"
	"testing"

	"slipway/container"
)

func TestConfigDefaults(t *testing.T) {
	set := Config{
		Workdir: "/w", User: container.User{UID: 1, GID: 2}, Env: map[string]string{"A": "b"}, DeadMan: 1, Lifetime: 1,
		Scratch: []string{}, Root: "/r", Home: "/h",
	}
	defaults := Config{
		Workdir: container.DefaultWorkdir, DeadMan: container.DefaultDeadMan, Lifetime: container.DefaultLifetime, Scratch: []string{"/tmp"}, Home: "/tmp",
	}
	for _, tt := range []struct {
		name     string
		in, want Config
	}{
		{"nothing is set", Config{}, defaults},
		{"times below zero", Config{DeadMan: -1, Lifetime: -1}, defaults},
		{"all is set", set, set},
	} {
		if got := tt.in.withDefaults(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
