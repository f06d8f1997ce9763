package container

import "testing"

func TestOr(t *testing.T) {
	const mib = 1 << 20
	def := Resources{Memory: 512 * mib, Tmp: 256 * mib, Shm: 64 * mib}
	for _, tt := range []struct{ r, def, want Resources }{
		{Resources{}, def, def},
		{Resources{Memory: 32 * mib}, def, Resources{Memory: 32 * mib, Tmp: 32 * mib, Shm: 32 * mib}},
		{Resources{Memory: 128 * mib}, def, Resources{Memory: 128 * mib, Tmp: 128 * mib, Shm: 64 * mib}},
		{Resources{Memory: 32 * mib, Tmp: 48 * mib}, def, Resources{Memory: 32 * mib, Tmp: 48 * mib, Shm: 32 * mib}}, // asked for
		{Resources{}, Resources{Tmp: mib}, Resources{Tmp: mib}},
	} {
		if got := tt.r.Or(tt.def); got != tt.want {
			t.Errorf("%+v: got %+v, want %+v", tt.r, got, tt.want)
		}
	}
}

func TestApply_TmpWithinMemory(t *testing.T) {
	got, err := Policy{}.Apply(Spec{Name: "slipway-a-1", Resources: Resources{Memory: 32 << 20}})
	if err != nil || got.Resources.Tmp != 32<<20 || got.Resources.Shm != 32<<20 {
		t.Errorf("got %+v, %v; want a /tmp and a /dev/shm of 32 MiB", got.Resources, err)
	}
}
