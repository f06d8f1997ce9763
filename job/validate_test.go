package job

import (
	"reflect"
	"testing"
	"time"
)

// TestStep_Validate: a step alone has the mistakes that a job with it has, with paths that begin within the step.
func TestStep_Validate(t *testing.T) {
	t.Parallel()
	tooLong := Duration(2 * MaxGrace)
	for name, tc := range map[string]struct {
		step Step
		want []string
	}{
		"fine":          {Step{Run: "true"}, nil},
		"no kind":       {Step{}, []string{""}},
		"two kinds":     {Step{Run: "true", Read: "x"}, []string{"read"}},
		"fields":        {Step{Run: " ", Timeout: Duration(time.Nanosecond), Grace: &tooLong}, []string{"run", "timeout", "grace"}},
		"deeper":        {Step{Command: []string{""}, Retry: Retry{Attempts: -1}}, []string{"command[0]", "retry.attempts"}},
		"in a map":      {Step{Run: "true", Env: map[string]string{"a b": ""}}, []string{`env["a b"]`}},
		"in an object":  {Step{Write: &WriteFile{Path: "/x"}}, []string{"write.path", "write"}},
		"not a process": {Step{Read: "x", Dir: "d"}, []string{"dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pathsOf(tc.step.Validate()); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("alone: got mistakes at %q, want %q", got, tc.want)
			}
			var inJob []string
			for _, p := range tc.want {
				inJob = append(inJob, joined("steps[0]", p))
			}
			j := Job{Image: "x", Steps: []Step{tc.step}}
			if got := pathsOf(j.Validate()); !reflect.DeepEqual(got, inJob) {
				t.Errorf("in a job: got mistakes at %q, want %q", got, inJob)
			}
		})
	}
}

func joined(at, path string) string {
	if path == "" {
		return at
	}
	return at + "." + path
}

func pathsOf(err error) (paths []string) {
	if errs, ok := err.(Errors); ok { //nolint:errorlint // Validate promises Errors itself
		for _, e := range errs {
			paths = append(paths, e.Path)
		}
	}
	return paths
}
