package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrOtherJob says that the id belongs to another job. Nothing was submitted. The error is an *OtherJobError.
var ErrOtherJob = errors.New("the id belongs to another job")

// OtherJobError says how the job that has an id differs from the one that was submitted under it. It matches ErrOtherJob.
type OtherJobError struct {
	ID ID
	// Fields are the top-level fields of the spec that differ, sorted. Empty: one of the two is no JSON object.
	Fields []string
}

// Error names the id and the fields.
func (e *OtherJobError) Error() string {
	if len(e.Fields) == 0 {
		return fmt.Sprintf("id %s belongs to another job", e.ID)
	}
	return fmt.Sprintf("id %s belongs to another job, which differs in %s", e.ID, strings.Join(e.Fields, ", "))
}

// Is reports whether target is ErrOtherJob.
func (e *OtherJobError) Is(target error) bool { return target == ErrOtherJob }

// Hint says what to do about it.
func (e *OtherJobError) Hint() string {
	return "Submit this job under an id of its own"
}

// Fingerprint holds a short digest of each top-level field of an encoded spec. A queue keeps it longer than the spec, so
// that it can tell whether a job that is submitted under a known id is that job, and where it differs.
//
// The field id is not part of it, and neither is not_before: a producer that repeats a call may count a delay from now, and
// means the same job. What the spec leaves out equals its default, for queue and priority.
type Fingerprint map[string]string

// digestBytes is the length of one field's digest. It has to tell apart what people mistake for each other; nobody gains
// by forging it, since whoever may submit may also choose a new id.
const digestBytes = 8

// NewFingerprint makes the fingerprint of an encoded spec. It takes any bytes: foreign programs submit, too.
func NewFingerprint(spec []byte) Fingerprint {
	var fields map[string]json.RawMessage
	if json.Unmarshal(spec, &fields) != nil {
		return Fingerprint{"": digest(spec)}
	}
	f := make(Fingerprint, len(fields))
	for name, value := range fields {
		var plain bytes.Buffer
		if json.Compact(&plain, value) == nil && !implied(name, plain.String()) {
			f[name] = digest(plain.Bytes())
		}
	}
	return f
}

// implied reports whether a field with this value says no more than a spec without the field, or nothing that counts.
func implied(field, value string) bool {
	switch field {
	case "id", "not_before":
		return true
	case "queue":
		return value == `"`+DefaultQueue+`"`
	case "priority":
		return value == `"`+string(PriorityNormal)+`"`
	}
	return false
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:digestBytes])
}

// Compare returns an *OtherJobError if f and the job's own fingerprint differ, else nil. A fingerprint that is nil is unknown,
// and equals all.
func (f Fingerprint) Compare(id ID, own Fingerprint) error {
	if f == nil || own == nil {
		return nil
	}
	all := maps.Clone(f)
	maps.Copy(all, own)
	var fields []string
	for name := range all {
		if f[name] != own[name] {
			fields = append(fields, name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	if fields[0] == "" { // one of the two is no JSON object, or has a field that can't be named
		fields = nil
	}
	return &OtherJobError{ID: id, Fields: fields}
}
