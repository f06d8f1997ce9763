package job

import "strconv"

// The kinds of steps, as Step.Kind returns them. Each is the name of the field that holds the step.
const (
	KindRun     = "run"
	KindCommand = "command"
	KindWrite   = "write"
	KindRead    = "read"
	KindDelete  = "delete"
	KindList    = "list"
)

// stepKinds lists the kinds of steps in the order of their documentation.
func stepKinds() []string {
	return []string{KindRun, KindCommand, KindWrite, KindRead, KindDelete, KindList}
}

// Kind says what s does: one of the constants KindRun to KindList, or "" for a step that does nothing or more than one
// thing, which no valid job has.
func (s *Step) Kind() string {
	if kinds := s.kinds(); len(kinds) == 1 {
		return kinds[0]
	}
	return ""
}

// kinds lists the kinds that s sets.
func (s *Step) kinds() []string {
	set := []bool{s.Run != "", len(s.Command) > 0, s.Write != nil, s.Read != "", s.Delete != "", s.List != ""}
	var kinds []string
	for i, kind := range stepKinds() {
		if set[i] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// isProcess reports whether s starts a process in the box.
func (s *Step) isProcess() bool { return s.Run != "" || len(s.Command) > 0 }

// Label is what people see of the step at index: its name, or else its position
// counted from 1.
func (s *Step) Label(index int) string {
	if s.Name != "" {
		return s.Name
	}
	return strconv.Itoa(index + 1)
}

// WriteFile is the argument of a write step. Exactly one of Content and
// ContentBase64 is given.
type WriteFile struct {
	// Path is where the file shall be; missing folders are made. Required.
	// Limits: relative to the workspace, clean, 4096 bytes, not starting with .sandbox-state.
	Path string `json:"path"`
	// Content is the file's text. Limits: a job has MaxSpecBytes in all.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes, in standard base64. Limits: as Content.
	ContentBase64 []byte `json:"content_base64,omitempty" spec:"filled"`
	// Mode is the file's permission in octal. Empty means 0644. Limits: at most 0777.
	Mode Mode `json:"mode,omitempty"`
}

// Condition says when a step runs.
type Condition string

// The conditions.
const (
	// IfSuccess: as long as no step before it failed or timed out.
	IfSuccess Condition = "success"
	// IfFailure: only after a step failed or timed out. Not once the job's own timeout ran out or a user canceled it.
	IfFailure Condition = "failure"
	// IfAlways: also after a failure, a timeout or a first cancel; after the job's timeout and a cancel for 5m in all. An abort ends these as well.
	IfAlways Condition = "always"
)

// conditions lists every Condition.
func conditions() []Condition { return []Condition{IfSuccess, IfFailure, IfAlways} }
