package wsync

import (
	"archive/tar"
	"bytes"
	"time"
)

const tarBlock = 512

// tarZeros ends a tar, and pads files.
var tarZeros [2 * tarBlock]byte

// putTarHeader writes the header of a file whose name is short and plain, byte for byte as archive/tar does it but
// twenty times as fast; for thousands of small files that is time. It tells whether it could.
func putTarHeader(b []byte, e *entry, size int) bool {
	if len(e.Path) > 100 {
		return false
	}
	for i := range len(e.Path) {
		if e.Path[i] >= 0x80 {
			return false
		}
	}
	clear(b)
	copy(b, e.Path)
	putOctal(b[100:107], int64(e.Mode))
	putOctal(b[108:115], 0) // uid
	putOctal(b[116:123], 0) // gid
	putOctal(b[124:135], int64(size))
	putOctal(b[136:147], packTime(e.ModTime).Unix())
	copy(b[148:156], "        ") // as which the checksum counts itself
	b[156] = tar.TypeReg
	copy(b[257:265], "ustar\x0000")
	putOctal(b[329:336], 0) // device
	putOctal(b[337:344], 0)
	sum := int64(0)
	for _, c := range b {
		sum += int64(c)
	}
	putOctal(b[148:154], sum)
	b[154] = 0
	return true
}

// putOctal fills b with digits. What they are of fits: packs and times have limits.
func putOctal(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v&7)
		v >>= 3
	}
}

// longTarHeader is the header of any file.
func longTarHeader(e *entry, size int) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: e.Path, Mode: int64(e.Mode), Size: int64(size), ModTime: packTime(e.ModTime),
	})
	return b.Bytes(), err
}

// packTime is the time in a pack's headers: whole seconds that every tar can read.
func packTime(ns int64) time.Time {
	return time.Unix(min(max(floorSeconds(ns), 0), 1<<33-1), 0)
}
