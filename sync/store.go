package wsync

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors of this package and of every Store. They are matched with errors.Is.
var (
	// ErrNotFound: no such object, or no such path.
	ErrNotFound = errors.New("not found")
	// ErrPrecondition: the object is not as the condition says. The write did not happen, unless an earlier try of the
	// same call did it and its reply was lost: only a read tells.
	ErrPrecondition = errors.New("precondition failed")
	// ErrUnavailable: the store does not answer, or not in time. Whether a write happened is unknown.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied: the store refused the credentials or the right to do it.
	ErrDenied = errors.New("store access denied")
	// ErrNoBucket: the bucket does not exist.
	ErrNoBucket = errors.New("bucket not found")
	// ErrUnsafeStore: the store ignores conditions, so that two writers could overwrite each other.
	ErrUnsafeStore = errors.New("store ignores conditional writes")
	// ErrConflict: another writer committed to the workspace since the pull. See Conflict.
	ErrConflict = errors.New("workspace conflict")
	// ErrState: a state file breaks a rule. Nothing of it was used.
	ErrState = errors.New("invalid workspace state")
	// ErrCorrupt: an object's content is not what the state says.
	ErrCorrupt = errors.New("stored content is corrupt")
	// ErrTooLarge: the workspace exceeds a limit of Options.
	ErrTooLarge = errors.New("workspace exceeds a limit")
	// ErrUnsupported: a state that this version can't restore, such as one of another layout.
	ErrUnsupported = errors.New("not supported by this version")
	// ErrMassDelete: a push would delete most of the workspace, and PushOptions.AllowMassDelete is not set.
	ErrMassDelete = errors.New("push would delete most of the workspace")
)

// Store holds objects. It is safe for concurrent use. It tries again by itself what can be repeated without harm. A
// conditional write is tried once: a second try could be refused because the first one took effect.
type Store interface {
	// Get opens an object. The caller closes Body. ErrNotFound.
	Get(ctx context.Context, key string) (*Object, error)
	// GetRange opens length bytes from off, fewer if the object ends before. Size is then that of the range. ErrNotFound.
	GetRange(ctx context.Context, key string, off, length int64) (*Object, error)
	// Put writes an object of size bytes. body is read from its start at each try. It returns the new ETag.
	// ErrPrecondition if opts has a condition that doesn't hold.
	Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts PutOptions) (etag string, err error)
	// PutStream writes an object whose bytes come once, in parts, without a condition. The object is what
	// body yields until io.EOF; size is what is expected, and only chooses the parts. If body fails, nothing is written.
	PutStream(ctx context.Context, key string, body io.Reader, size int64) error
	// Delete removes objects. A key without an object counts as removed.
	Delete(ctx context.Context, keys ...string) error
	// List yields the objects whose keys begin with prefix, in byte order.
	List(ctx context.Context, prefix string) iter.Seq2[ObjectInfo, error]
}

// Object is an open object.
type Object struct {
	ObjectInfo
	// Metadata that was given to Put, with lower-case keys.
	Metadata map[string]string
	Body     io.ReadCloser
}

// ObjectInfo describes an object.
type ObjectInfo struct {
	Key string
	// ETag is opaque: it is compared, never read.
	ETag     string
	Size     int64
	Modified time.Time
}

// PutOptions are the conditions of a Put, and what is known of its body.
type PutOptions struct {
	// IfMatch: only if the object's ETag is this one.
	IfMatch string
	// IfNoneMatch: only if there is no such object.
	IfNoneMatch bool
	Metadata    map[string]string
	// SHA256 of the body, if the caller knows it: the store then need not make it. A wrong one can fail the Put.
	SHA256 [32]byte
}
