package supervisor

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"testing"

	"slipway/container"
)

func TestBinary(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		data, err := Binary(arch)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		libs, err := f.ImportedLibraries()
		if f.Machine != machine || err != nil || len(libs) > 0 {
			t.Errorf("%s: machine %v, libraries %v, %v; want a static program for it", arch, f.Machine, libs, err)
		}
		if len(data) > 3<<20 {
			t.Errorf("%s: %d bytes, more than 3 MiB", arch, len(data))
		}
		if again, err := Binary(arch); err != nil || &again[0] != &data[0] {
			t.Errorf("%s, asked for again: got %v and another copy, want the one that was unpacked", arch, err)
		}
		sum := sha256.Sum256(data)
		if digest, err := Digest(arch); err != nil || digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: digest %s, %v", arch, digest, err)
		}
	}
	if _, err := Binary("riscv64"); !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("riscv64 = %v, want ErrUnsupported", err)
	}
	if _, err := Digest("riscv64"); !errors.Is(err, container.ErrUnsupported) {
		t.Errorf("digest for riscv64 = %v, want ErrUnsupported", err)
	}
}
