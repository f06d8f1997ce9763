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
