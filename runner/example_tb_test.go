package runner_test

import (
	"fmt"
	"testing"
)

// testless lets an example use the mock, which complains to a test.
type testless struct{ testing.TB }

func (testless) Helper()                           {}
func (testless) Cleanup(func())                    {}
func (testless) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
