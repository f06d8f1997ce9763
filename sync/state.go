package wsync

import (
	"path"
	"time"
)

// Layouts and encodings that a state can name. Others are refused when they are used.
const (
	stateVersion = "1.1"
	layoutPacked = "packed"
	encNone      = "none"
	// maxParents is how many commits a head remembers, to recognize one's own that was overtaken.
	maxParents = 16
)

// State lists what a workspace holds and where each file's bytes are. Its stored
// form is .sandbox-state, version 1.1, which a reader of 1.0 understands.
// Files are sorted by the raw bytes of their paths.
type state struct {
	Version      string
	LastSyncedAt int64 // Unix seconds
	Workspace    string
	Commit       string // ULID
	Parent       string
	Parents      []string // the latest first, Parent included, at most 16
	Generation   int64
	Writer       Writer
	CreatedAt    time.Time // UTC, milliseconds
	Layout       string
	Totals       totals
	IgnoreSHA256 string
	Packs        []pack
	Files        []entry

	extra []field // what a later 1.x put there; kept
}

// totals counts the regular files of a state.
type totals struct {
	Files int64
	Bytes int64
}

// Pack is a plain tar of small files, packs/<ID>.
type pack struct {
	ID     string
	Size   int64
	SHA256 [32]byte
	Enc    string // "" and "none": as it is

	extra []field
}

// Entry is one file, folder or link. A folder is listed only if it is empty, or its mode is not 0755.
type entry struct {
	Path string
	Type NodeType
	Size int64
	// Mode holds Unix bits, 07777 at most.
	Mode    uint32
	ModTime int64 // Unix nanoseconds; 0 for folders and links
	// MD5 of the content or of a link's target. It is the seed format's checksum.
	MD5 [16]byte
	// SHA256 of the content; zero in a state of version 1.0. It decides whether content is equal.
	SHA256 [32]byte
	Target string
	// Pack indexes State.Packs, Off is where the content begins in it. −1: not in a pack.
	Pack int
	Off  int64
	// Blob names the object blobs/<Blob>.
	Blob string

	// dirty: the content has to be read to be known; it differs from every other.
	dirty bool
	extra []field
}

// field is a member of a JSON object that this version doesn't know.
type field struct {
	name  string
	value string // compact JSON
}

const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
	defaultLinkMode = 0o777
)

func defaultMode(t NodeType) uint32 {
	switch t {
	case TypeDir:
		return defaultDirMode
	case TypeSymlink:
		return defaultLinkMode
	default:
		return defaultFileMode
	}
}

// parentOf is the folder that holds p, "" for the root.
func parentOf(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}
