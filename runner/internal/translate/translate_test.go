package translate

import (
	"io"
	"slices"
	"testing"

	"slipway/container"
	"slipway/job"
)

func ptr[T any](v T) *T { return &v }

func TestCommand(t *testing.T) {
	t.Parallel()
	got, err := Command(&job.Step{Run: "make", Dir: "src", User: "5:6", Stdin: ptr("in"), Grace: ptr(job.Duration(0))})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Args, []string{"/bin/sh", "-e", "-c", "make"}) || got.Dir != "src" || got.User.UID != 5 || got.User.GID != 6 ||
		string(got.Stdin) != "in" || got.Grace != 0 {
		t.Errorf("got %+v", got)
	}
	got, err = Command(&job.Step{Run: "print(1)", Shell: []string{"python3", "-c"}})
	if err != nil || !slices.Equal(got.Args, []string{"python3", "-c", "print(1)"}) || got.Grace != job.DefaultGrace {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Command(&job.Step{Run: "x", User: "me"}); err == nil {
		t.Error("got no error for a user that is no number")
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want container.User
		bad  bool
	}{
		{"", container.User{}, false},
		{"7", container.User{UID: 7, GID: 7}, false},
		{"7:8", container.User{UID: 7, GID: 8}, false},
		{"0", container.User{}, false},
		{"me", container.User{}, true},
		{"7:", container.User{}, true},
		{":7", container.User{}, true},
		{"-1", container.User{}, true},
		{"4294967296", container.User{}, true},
	}
	for _, tt := range tests {
		if got, err := User(tt.in); got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%q: got %v, %v; want %v, an error: %t", tt.in, got, err, tt.want, tt.bad)
		}
	}
}

// TestSpec_Root: a job that asks for root is told from one that says nothing.
func TestSpec_Root(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]bool{"": false, "0": true, "0:0": true, "1000:1000": false} {
		s, err := Spec(&job.Job{User: user}, container.Resources{})
		if got := s.HasRelaxation(container.RelaxRootSteps); err != nil || got != want {
			t.Errorf("%q: asks for root: %t (%v), want %t", user, got, err, want)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text *string
		data []byte
		want string
	}{{ptr("text"), nil, "text"}, {ptr(""), nil, ""}, {nil, []byte("data"), "data"}, {nil, nil, ""}} {
		c, size := Content(tt.text, tt.data)
		if got, err := io.ReadAll(c); err != nil || string(got) != tt.want || size != int64(len(tt.want)) {
			t.Errorf("got %q, size %d, %v; want %q", got, size, err, tt.want)
		}
	}
}
