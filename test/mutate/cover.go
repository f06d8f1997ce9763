package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the tests of one package.
type suite struct {
	path, dir string
	tests     []*test
}

// test is one top-level test with what it did without a mutation.
type test struct {
	name   string
	took   time.Duration
	blocks []block
}

// block is a range of one file that the test ran through. Lines and columns count from 1.
type block struct {
	file                             string // import path and base name, as coverage profiles have it
	fromLine, fromCol, toLine, toCol int
}

// reaches tells whether the test ran through the place.
func (t *test) reaches(file string, line, col int) bool {
	for _, b := range t.blocks {
		if b.file == file &&
			(b.fromLine < line || b.fromLine == line && b.fromCol <= col) &&
			(line < b.toLine || line == b.toLine && col < b.toCol) {
			return true
		}
	}
	return false
}

// measure runs each test of the package at path alone, jobs at a time, and records its time and the blocks of target that it reached.
func measure(ctx context.Context, target, path, tmp string, jobs int) (*suite, error) {
	found, err := list(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &suite{path: found[0].ImportPath, dir: found[0].Dir}
	binary := filepath.Join(tmp, "cover.test")
	if out, err := command(ctx, "", nil, "go", "test", "-c", "-cover", "-coverpkg="+target, "-o", binary, s.path); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", path, err, out)
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("build the tests of %s: it has no tests", path)
	}
	defer os.Remove(binary)
	out, err := command(ctx, s.dir, nil, binary, "-test.list", ".")
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w\n%s", path, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); testName.MatchString(name) {
			s.tests = append(s.tests, &test{name: name})
		}
	}
	return s, s.measureEach(ctx, binary, tmp, jobs)
}

var testName = regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`)

func (s *suite) measureEach(ctx context.Context, binary, tmp string, jobs int) error {
	errs := make([]error, len(s.tests))
	inParallel(len(s.tests), jobs, func(i int) {
		if ctx.Err() == nil {
			errs[i] = s.tests[i].measure(ctx, s.dir, binary, filepath.Join(tmp, "c"+strconv.Itoa(i)))
		}
	})
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return ctx.Err()
}

func (t *test) measure(ctx context.Context, dir, binary, tmp string) error {
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	profile := filepath.Join(tmp, "profile")
	began := time.Now()
	out, err := command(ctx, dir, []string{"TMPDIR=" + tmp}, binary, "-test.run", "^"+t.name+"$", "-test.coverprofile", profile)
	if err != nil {
		return fmt.Errorf("%s fails without a mutation: %w\n%s", t.name, err, out)
	}
	t.took = time.Since(began)
	t.blocks, err = readProfile(profile)
	return err
}

// profileLine is file:fromLine.fromCol,toLine.toCol statements count.
var profileLine = regexp.MustCompile(`^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// readProfile returns the blocks of a coverage profile that were reached.
func readProfile(path string) ([]block, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var blocks []block
	for in := bufio.NewScanner(f); in.Scan(); {
		m := profileLine.FindStringSubmatch(in.Text())
		if m == nil || m[6] == "0" {
			continue // the first line says the mode
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[2+i])
		}
		blocks = append(blocks, block{file: m[1], fromLine: n[0], fromCol: n[1], toLine: n[2], toCol: n[3]})
	}
	return blocks, nil
}

// inParallel calls do(0) … do(n-1), at most jobs at a time, and returns when all have returned.
func inParallel(n, jobs int, do func(int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, jobs)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	wg.Wait()
}
