package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// judged are survivors that someone looked at, by key, with the reason why each may live.
type judged map[string]string

// readJudged reads the file of judged survivors: a line for each, "key | reason". Empty lines and lines that start
// with # are skipped. A missing file is an empty list.
func readJudged(path string) (judged, error) {
	j := judged{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndex(line, " | ") // a key may hold the operator
		if i < 0 || strings.TrimSpace(line[i+3:]) == "" {
			return nil, fmt.Errorf("%s:%d: got %q, want \"key | reason\"", path, n, line)
		}
		j[strings.TrimSpace(line[:i])] = strings.TrimSpace(line[i+3:])
	}
	return j, in.Err()
}

// stale returns the keys of files of the package that name no mutant any more.
func (j judged) stale(files []*source, all []mutant) []string {
	keys := map[string]bool{}
	for _, m := range all {
		keys[m.key()] = true
	}
	var stale []string
	for key := range j {
		for _, f := range files {
			if strings.HasPrefix(key, f.name+" ") && !keys[key] {
				stale = append(stale, key)
			}
		}
	}
	return stale
}
