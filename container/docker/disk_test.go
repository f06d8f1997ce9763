package docker

import (
	"errors"
	"math"
	"strings"
	"testing"

	"slipway/container"
	"slipway/internal/hint"
)

func TestRoomEnough(t *testing.T) {
	for _, tt := range []struct {
		name string
		have room
		want string
	}{
		{"enough", room{2 << 30, 1_000_000}, ""},
		{"exactly", room{1 << 30, minInodes}, ""},
		{"no inodes are counted", room{2 << 30, -1}, ""},
		{"few bytes", room{12 << 20, 1_000_000}, "/data has 12MiB free, less than 1GiB"},
		{"none", room{0, -1}, "/data has 0B free"},
		{"few files", room{2 << 30, 7}, "/data has room for 7 more files"},
	} {
		err := tt.have.enough("/data", 1<<30)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want no error", tt.name, err)
			}
			continue
		}
		if !errors.Is(err, container.ErrEngineUnavailable) || !errors.Is(err, container.ErrEngineFull) || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(hint.Of(err), "docker.min_free") {
			t.Errorf("%s: got %v (%s), want an error with %q and what to do", tt.name, err, hint.Of(err), tt.want)
		}
	}
}

// TestCheckDisk: an engine on this machine is not asked for boxes while its disk has no room, unless nobody wants to know.
func TestCheckDisk(t *testing.T) {
	e := setup(t)
	info, err := e.Engine(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := roomOf(info.RootDir); !ok || !strings.HasPrefix(info.Host, "unix://") {
		t.Skipf("the engine's folder %s at %s is not on this machine", info.RootDir, info.Host)
	}
	for min, full := range map[int64]bool{0: false, math.MaxInt64: true, -1: false} {
		p, err := New(Config{MinFree: min})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(e.ctx); errors.Is(err, container.ErrEngineFull) != full {
			t.Errorf("MinFree %d: got %v, want the disk to be full: %t", min, err, full)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
