// Package mutators shows what each mutator does: a function's comment lists its mutants, in order.
package mutators

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"
)

// want: duration: 3 -> 30
// want: duration: time.Minute -> 10*time.Minute
const (
	three = 3 * time.Second
	long  = time.Minute
)

type gate struct{ open, shut func() }

// want: drop: g.open()
// want: swap: g.open() defer g.shut()
// want: drop: defer g.shut()
func (g *gate) pass() {
	g.open()
	defer g.shut()
}

// want: never: n < 0 || n > most
// want: always: n < 0 || n > most
// want: operand: n < 0 || n > most -> n < 0
// want: operand: n < 0 || n > most -> n > most
// want: boundary: n < 0 -> n <= 0
// want: constant: 0 -> 1
// want: boundary: n > most -> n >= most
// want: drop: return
// want: drop: n++
// want: drop: use(n)
func conditions(n, most int) {
	if n < 0 || n > most {
		return
	}
	n++
	use(n)
}

// want: never: err != nil
// want: no error: fmt.Errorf("do: %w", err)
func wraps(err error) error {
	if err != nil {
		return fmt.Errorf("do: %w", err)
	}
	return nil
}

// want: argument: errors.Join(a, b) -> a
// want: argument: errors.Join(a, b) -> b
// want: drop: err = errors.Join(a, b)
// want: no error: err
func joins(a, b error) (err error) {
	err = errors.Join(a, b)
	return err
}

// want: term: a + b - c -> a + b
// want: term: a + b -> a
// want: term: a + b -> b
func sums(a, b, c time.Duration) time.Duration {
	return a + b - c
}

// want: factor: a * b / c -> a * b
// want: factor: a * b -> a
// want: factor: a * b -> b
func products(a, b, c int) int {
	return a * b / c
}

// want: negate: a && b && c
// want: operand: a && b && c -> a && b
// want: operand: a && b -> a
// want: operand: a && b -> b
func predicate(a, b, c bool) bool {
	return a && b && c
}

// want: negate: a == b
// want: equality: a == b -> a != b
func equal(a, b string) bool {
	return a == b
}

// want: constant: true -> false
func yes() bool { return true }

// want: drop case: case <-ctx.Done(): return context.Cause(ctx)
// want: no error: context.Cause(ctx)
// want: drop case: case done <- 1:
// want: constant: 1 -> 2
func selects(ctx context.Context, done chan int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case done <- 1:
	}
	return nil
}

// want: drop: continue
// want: drop case: case 1: continue
// want: drop: break
// want: drop case: case 2: break
// want: constant: 2 -> 3
// want: drop: list[n]++
func branches(list []int) {
	for _, n := range list {
		switch n {
		case 1:
			continue
		case 2:
			break
		}
		list[n]++
	}
}

// want: unwrap: path.Clean(name)
func unwraps(name string) string { return path.Clean(name) }

type logger struct{}

func (logger) Info(string, ...any) {}

// What is logged is not mutated, nor are names of files' modes and sizes of maps.
//
// want: drop: use(0o644, make(map[string]int, 16))
func leaves(log logger) {
	log.Info("begins", "n", 1)
	use(0o644, make(map[string]int, 16))
}

func use(...any) {}

// The order of statements that have nothing in common does not matter.
//
// want: drop: s.a = 1
// want: swap: s.b = 2 s.c = s.b
// want: drop: s.b = 2
// want: drop: s.c = s.b
// want: constant: 1 -> 2
// want: constant: 2 -> 3
func assigns(s *struct{ a, b, c int }) {
	s.a = 1
	s.b = 2
	s.c = s.b
}
