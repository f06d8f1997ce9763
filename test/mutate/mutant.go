package main

import (
	"fmt"
	"slices"
	"strings"
)

// mutant is the package with one range of bytes of one file replaced.
type mutant struct {
	file       *source
	start, end int    // the range
	text       string // what stands there instead
	op         string // the mutator's name
	fn         string // the function around it; empty at package level
	nth        int    // 2, 3, … tells mutants apart that read the same within one function
	unused     []int  // where imports begin that only the changed text used
	everywhere bool   // at package level, where no statement is counted: every test may reach it
}

// apply returns the changed file. The number of lines stays, so that traces of failed tests fit the source.
func (m mutant) apply() []byte {
	src := string(m.file.src)
	lost := strings.Count(src[m.start:m.end], "\n") - strings.Count(m.text, "\n")
	changed := src[:m.start] + m.text + strings.Repeat("\n", max(lost, 0)) + src[m.end:]
	for _, at := range slices.Backward(slices.Sorted(slices.Values(m.unused))) {
		rest := changed[at:]
		if rest[0] != '"' { // it has a name
			rest = rest[strings.IndexByte(rest, '"'):]
		}
		changed = changed[:at] + "_ " + rest
	}
	return []byte(changed)
}

// line is the 1-based line of the change.
func (m mutant) line() int { return 1 + strings.Count(string(m.file.src[:m.start]), "\n") }

// key names the mutant in the file of judged survivors. It has no line number: what is judged stays judged when the code moves.
func (m mutant) key() string {
	where := m.file.name
	if m.fn != "" {
		where += " " + m.fn
	}
	key := fmt.Sprintf("%s %s: %s", where, m.op, short(string(m.file.src[m.start:m.end])))
	if showsNew[m.op] {
		key += " -> " + short(m.text)
	}
	if m.nth > 1 {
		key += fmt.Sprintf(" #%d", m.nth)
	}
	return key
}

// showsNew are the mutators whose name and old text do not say what the new text is.
var showsNew = map[string]bool{"boundary": true, "equality": true, "term": true, "factor": true, "operand": true, "constant": true, "duration": true, "argument": true}

// diff shows the changed lines, old and new.
func (m mutant) diff() string {
	src := string(m.file.src)
	from := strings.LastIndexByte(src[:m.start], '\n') + 1
	to := len(src)
	if i := strings.IndexByte(src[m.end:], '\n'); i >= 0 {
		to = m.end + i
	}
	var b strings.Builder
	for line := range strings.Lines(src[from:to]) {
		b.WriteString("    - " + strings.TrimRight(line, "\n") + "\n")
	}
	for line := range strings.Lines(src[from:m.start] + m.text + src[m.end:to]) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    + " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

// short is a piece of source on one line, cut where it gets long.
func short(text string) string {
	const most = 70
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(r)
}

// position is the 1-based line and column of the change, in bytes, as coverage profiles count.
func (m mutant) position() (line, col int) {
	return m.line(), m.start - strings.LastIndexByte(string(m.file.src[:m.start]), '\n')
}
