package job

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/internal/size"
)

// ID is a ULID: 26 characters of Crockford's base 32 that sort by time.
//
// No other form is accepted, since an ID becomes a part of subjects, container names and keys.
type ID string

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

var lastID struct {
	sync.Mutex
	hi uint64 // 48 bits of milliseconds, 16 bits of randomness
	lo uint64
}

// NewID makes an ID from the present time. IDs of one process are strictly
// increasing, also within a millisecond.
func NewID() ID {
	lastID.Lock()
	defer lastID.Unlock()
	ms := uint64(time.Now().UnixMilli())
	if ms <= lastID.hi>>16 {
		if lastID.lo++; lastID.lo == 0 {
			lastID.hi++
		}
	} else {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails since Go 1.24
		lastID.hi = ms<<16 | uint64(binary.BigEndian.Uint16(b[:2]))
		lastID.lo = binary.BigEndian.Uint64(b[2:])
	}
	return encodeID(lastID.hi, lastID.lo)
}

// encodeID writes 128 bits as 26 digits of 5 bits, the first of which holds 3.
func encodeID(hi, lo uint64) ID {
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return ID(out[:])
}

// ParseID checks that s is a ULID. Lower case is accepted and raised.
func ParseID(s string) (ID, error) {
	up := strings.ToUpper(s)
	if len(up) != 26 || up[0] > '7' || strings.Trim(up, crockford) != "" {
		return "", fmt.Errorf("parse id %.40q: not a ULID (26 characters of 0-9 and A-Z without I, L, O, U)", s)
	}
	return ID(up), nil
}

// Duration is a time with its unit, as Go writes it: "90s", "1h30m".
type Duration time.Duration

// MarshalText writes d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if _, noUnit := strconv.ParseFloat(string(b), 64); err != nil && noUnit == nil {
		return fmt.Errorf("a duration needs a unit: \"%.40ss\" for seconds, \"%.40sm\" for minutes", b, b)
	}
	if err != nil {
		return fmt.Errorf("not a duration such as \"90s\" or \"1h30m\": %.40q", b)
	}
	*d = Duration(v)
	return nil
}

// Std returns d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// Bytes is a size. It is written with a binary unit, "512MiB", and read with one
// of B, KiB, MiB, GiB, TiB or their short forms k, m, g, t, which are binary too.
type Bytes int64

// MarshalText writes b in the largest unit that keeps it whole.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String writes b in the largest unit that keeps it whole.
func (b Bytes) String() string { return size.Format(int64(b)) }

// UnmarshalText reads a whole number and a unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := size.Parse(string(text))
	if err == nil {
		*b = Bytes(n)
	}
	return err
}

// Mode is a file's permission bits, written in octal: "0755".
//
// Zero means unset.
type Mode uint32

// MarshalText writes m in octal with a leading zero.
func (m Mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads octal digits, at most 0777.
func (m *Mode) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 8, 32)
	if err != nil || v > 0o777 {
		return fmt.Errorf("not a permission such as \"0644\": %.40q", b)
	}
	*m = Mode(v)
	return nil
}
