package job_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"slipway/job"
)

func TestFingerprint(t *testing.T) {
	const base = `{"version":"v1","name":"a","image":"busybox","steps":[{"run":"true"}]}`
	for name, c := range map[string]struct {
		a, b string
		want []string // nil: the same job
	}{
		"itself":                     {base, base, nil},
		"spaces and order":           {base, "{ \"steps\": [ {\"run\": \"true\"} ],\n\"image\":\"busybox\",\"name\":\"a\",\"version\":\"v1\"}", nil},
		"a default, said":            {`{"image":"x"}`, `{"image":"x","queue":"default","priority":"normal"}`, nil},
		"id and not_before":          {`{"image":"x"}`, `{"image":"x","id":"A","not_before":"2026-01-02T03:04:05Z"}`, nil},
		"a value":                    {`{"image":"x","steps":[1]}`, `{"image":"x","steps":[2]}`, []string{"steps"}},
		"a field more, a field less": {`{"image":"x","env":{}}`, `{"image":"x","name":"n"}`, []string{"env", "name"}},
		"another queue":              {`{"image":"x"}`, `{"image":"x","queue":"nightly"}`, []string{"queue"}},
		"a large number":             {`{"a":9007199254740993}`, `{"a":9007199254740992}`, []string{"a"}},
		"no JSON":                    {base, `{"version":`, []string{}},
		"no object":                  {`[1]`, `[2]`, []string{}},
		"the same nonsense":          {`{"`, `{"`, nil},
		"a field without a name":     {`{"":1}`, `{"":2}`, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
				err := job.NewFingerprint([]byte(pair[0])).Compare("ID", job.NewFingerprint([]byte(pair[1])))
				if c.want == nil {
					if err != nil {
						t.Errorf("got %v, want the same job", err)
					}
					continue
				}
				var other *job.OtherJobError
				if !errors.As(err, &other) || !errors.Is(err, job.ErrOtherJob) || !slices.Equal(other.Fields, c.want) {
					t.Errorf("got %v, want another job that differs in %v", err, c.want)
				}
			}
		})
	}
}

// TestFingerprint_Unknown: what is not known is no reason to refuse a job.
func TestFingerprint_Unknown(t *testing.T) {
	f := job.NewFingerprint([]byte(`{"image":"x"}`))
	if err := errors.Join(f.Compare("ID", nil), job.Fingerprint(nil).Compare("ID", f)); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// TestFingerprint_Repeated: a producer that repeats its call with a delay from now means the same job.
func TestFingerprint_Repeated(t *testing.T) {
	j := &job.Job{ID: job.NewID(), Image: "x", Steps: []job.Step{{Run: "true"}}, NotBefore: time.Now()}
	first, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	j.NotBefore = j.NotBefore.Add(time.Minute)
	second, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.NewFingerprint(first).Compare(j.ID, job.NewFingerprint(second)); err != nil {
		t.Errorf("got %v, want the same job", err)
	}
}
