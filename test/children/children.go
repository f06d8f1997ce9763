// Package children finds what a process has started. It reads /proc, and so needs no program that a small machine lacks: a
// test that called pkill waited ten minutes where there was none.
package children

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Of returns the children of process pid, those that ended and were not waited for among them. On a system without /proc
// there are none.
func Of(pid int) []int {
	var pids []int
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is right
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
