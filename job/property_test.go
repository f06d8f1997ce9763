package job

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// equateEmpty: a list that is empty and one that is not there are written alike.
var equateEmpty = cmpopts.EquateEmpty()

// drawJob makes any valid job.
func drawJob(t *rapid.T) *Job {
	j := &Job{
		Version:  rapid.SampledFrom([]string{"", Version}).Draw(t, "version"),
		ID:       rapid.SampledFrom([]ID{"", NewID()}).Draw(t, "id"),
		Name:     drawName(t),
		Queue:    drawMatch(t, queuePattern),
		Priority: rapid.SampledFrom(Priorities()).Draw(t, "priority"),
		Labels:   rapid.MapOfN(rapid.StringMatching(labelPattern), rapid.Just("wert ü"), 0, 3).Draw(t, "labels"),
		Image:    rapid.StringMatching(imagePattern).Filter(func(s string) bool { return checkImage(s) == "" }).Draw(t, "image"),
		Platform: drawMatch(t, platformPattern),
		Pull:     rapid.SampledFrom(pullPolicies()).Draw(t, "pull"),
		User:     rapid.SampledFrom([]string{"", "0", "1000:1000"}).Draw(t, "user"),
		Workdir:  rapid.SampledFrom([]string{"", "/w", "/home/x"}).Draw(t, "workdir"),
		Env:      drawEnv(t),
		Network:  rapid.SampledFrom(networks()).Draw(t, "network"),
		Relax:    rapid.SliceOfNDistinct(rapid.SampledFrom(relaxations()), 0, 2, rapid.ID[Relaxation]).Draw(t, "relax"),
		Resources: Resources{
			CPUs: rapid.SampledFrom([]float64{0, MinCPUs, 0.1, 1. / 3, MaxCPUs}).Draw(t, "cpus"),
			Pids: rapid.SampledFrom([]int64{0, MinPids, MaxPids}).Draw(t, "pids"),
			Disk: Bytes(rapid.Int64Range(MinDisk, MaxSize).Draw(t, "disk")),
		},
		Timeout: drawDuration(t, MinTimeout, MaxTimeout),
		Retry:   drawRetry(t),
		Inputs:  drawInputs(t),
		Steps:   rapid.SliceOfN(rapid.Custom(drawStep), 1, 4).Draw(t, "steps"),
	}
	if rapid.Bool().Draw(t, "later") {
		j.NotBefore = time.Unix(rapid.Int64Range(1e9, time.Now().Unix()).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	}
	if rapid.Bool().Draw(t, "workspace") {
		j.Workspace = &Workspace{
			Prefix: rapid.StringMatching(prefixPattern).Draw(t, "prefix"),
			Push:   rapid.SampledFrom(workspacePushes()).Draw(t, "push"),
		}
	}
	return j
}

func drawMatch(t *rapid.T, pattern string) string {
	return rapid.OneOf(rapid.Just(""), rapid.StringMatching(pattern)).Draw(t, "match")
}

func drawName(t *rapid.T) string {
	return rapid.String().Filter(func(s string) bool { return checkName(s) == "" }).Draw(t, "name")
}

func drawEnv(t *rapid.T) map[string]string {
	value := rapid.String().Filter(func(s string) bool { return checkText(s) == "" })
	return rapid.MapOfN(rapid.StringMatching(envNamePattern), value, 0, 3).Draw(t, "env")
}

func drawDuration(t *rapid.T, least, most time.Duration) Duration {
	return Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(int64(least), int64(most))).Draw(t, "duration"))
}

func drawRetry(t *rapid.T) Retry {
	return Retry{Attempts: rapid.IntRange(0, MaxAttempts).Draw(t, "attempts"), Backoff: drawDuration(t, time.Millisecond, MaxBackoff)}
}

func drawPath(t *rapid.T) string {
	return rapid.String().Filter(func(s string) bool { return checkFile(s) == "" }).Draw(t, "path")
}

func drawInputs(t *rapid.T) []Input {
	var inputs []Input
	if rapid.Bool().Draw(t, "key") {
		inputs = append(inputs, Input{Path: "k", Key: drawPath(t), SHA256: strings.Repeat("a", 64)})
	}
	if rapid.Bool().Draw(t, "bytes") {
		content := rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "content")
		inputs = append(inputs, Input{Path: "b", ContentBase64: content, Mode: Mode(rapid.IntRange(0, 0o777).Draw(t, "mode"))})
	}
	return inputs
}

func drawStep(t *rapid.T) Step {
	s := Step{
		Name: drawName(t), Timeout: drawDuration(t, MinTimeout, MaxTimeout), Retry: drawRetry(t),
		If: rapid.SampledFrom(conditions()).Draw(t, "if"), ContinueOnError: rapid.Bool().Draw(t, "go on"),
	}
	text := rapid.String().Draw(t, "text")
	script := rapid.String().Filter(func(s string) bool { return checkText(s) == "" && strings.TrimSpace(s) != "" })
	switch rapid.SampledFrom(stepKinds()).Draw(t, "kind") {
	case KindRun:
		s.Run, s.Stdin, s.Env = script.Draw(t, "run"), &text, drawEnv(t)
	case KindCommand:
		grace := drawDuration(t, 0, MaxGrace)
		s.Command, s.Grace, s.Dir = rapid.SliceOfN(script, 1, 3).Draw(t, "argv"), &grace, drawPath(t)
	case KindWrite:
		s.Write = &WriteFile{Path: drawPath(t), Content: &text}
	case KindRead:
		s.Read = drawPath(t)
	case KindDelete:
		s.Delete = drawPath(t)
	case KindList:
		s.List = drawPath(t)
	}
	return s
}

func TestCodecKeepsJobs(t *testing.T) {
	schema := compile(t, Schema())
	rapid.Check(t, func(rt *rapid.T) {
		j := drawJob(rt)
		checkRoundTrip(rt, j)
		data, _ := Encode(j)
		if err := fits(t, schema, data); err != nil {
			rt.Fatalf("the schema refuses %s: %v", data, err)
		}
	})
}

func TestWithDefaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := drawJob(rt)
		before, _ := Encode(j)
		full := j.WithDefaults()
		checkRoundTrip(rt, full)
		if diff := cmp.Diff(full, full.WithDefaults()); diff != "" {
			rt.Fatalf("twice is not once:\n%s", diff)
		}
		for i := range full.Steps {
			if got := full.Steps[i].Kind(); got == "" || got != j.Steps[i].Kind() {
				rt.Fatalf("got kind %q, want %q", got, j.Steps[i].Kind())
			}
		}
		overwrite(reflect.ValueOf(full).Elem())
		if after, _ := Encode(j); string(after) != string(before) {
			rt.Fatalf("the copy shares memory: got %s, want %s", after, before)
		}
	})
}

// overwrite changes all that v holds in place.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				overwrite(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf("overwritten"))
		}
	default:
		v.SetZero()
	}
}

// What Encode writes in another spelling or drops must not be valid in code either.
func TestValidateBuiltInCode(t *testing.T) {
	minimal := func() *Job { return &Job{Image: "alpine", Steps: []Step{{Run: "true"}}} }
	bad, empty := "a\xffb", ""
	for name, tc := range map[string]struct {
		change func(*Job)
		want   string
	}{
		"utf8 name":       {func(j *Job) { j.Name = bad }, "name: not UTF-8"},
		"utf8 label":      {func(j *Job) { j.Labels = map[string]string{"a": bad} }, "labels.a: not UTF-8"},
		"utf8 env":        {func(j *Job) { j.Env = map[string]string{"A": bad} }, "env.A: not UTF-8"},
		"utf8 run":        {func(j *Job) { j.Steps[0].Run = bad }, "steps[0].run: not UTF-8"},
		"utf8 stdin":      {func(j *Job) { j.Steps[0].Stdin = &bad }, "steps[0].stdin: not UTF-8"},
		"utf8 dir":        {func(j *Job) { j.Steps[0].Dir = bad }, "steps[0].dir: not UTF-8"},
		"utf8 arg":        {func(j *Job) { j.Steps[0] = Step{Command: []string{"a", bad}} }, "steps[0].command[1]: not UTF-8"},
		"utf8 path":       {func(j *Job) { j.Steps[0] = Step{Read: bad} }, "steps[0].read: not UTF-8"},
		"utf8 content":    {func(j *Job) { j.Inputs = []Input{{Path: "a", Content: &bad}} }, "inputs[0].content: not UTF-8"},
		"utf8 workdir":    {func(j *Job) { j.Workdir = "/" + bad }, "workdir: not UTF-8"},
		"empty bytes":     {func(j *Job) { j.Inputs = []Input{{Path: "a", ContentBase64: []byte{}}} }, "inputs[0]: needs one of"},
		"empty command":   {func(j *Job) { j.Steps[0] = Step{Command: []string{}} }, "steps[0]: needs one of run"},
		"negative memory": {func(j *Job) { j.Resources.Memory = -1 }, "resources.memory: must be 16MiB to 1024TiB"},
		"not a number":    {func(j *Job) { j.Resources.CPUs = math.NaN() }, "resources.cpus: must be"},
		"negative tries":  {func(j *Job) { j.Retry.Attempts = -1 }, "retry.attempts: must be 1 to 20"},
		"mode":            {func(j *Job) { j.Inputs = []Input{{Path: "a", Content: &empty, Mode: 0o4755}} }, "inputs[0].mode: must be at most 0777, not 4755"},
		"nothing":         {func(j *Job) { *j = Job{} }, "image: required"},
	} {
		j := minimal()
		tc.change(j)
		err := j.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if err := minimal().Validate(); err != nil {
		t.Errorf("got %v, want a valid job", err)
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/valid/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, tc := range refusals {
		if len(tc.text) < 1000 {
			f.Add([]byte(tc.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Decode(data)
		if err != nil {
			checkMessages(t, err)
			return
		}
		checkRoundTrip(t, j)
		checkRoundTrip(t, j.WithDefaults())
	})
}

// checkMessages: whatever the input was, the messages can be shown.
func checkMessages(t *testing.T, err error) {
	t.Helper()
	errs, ok := err.(Errors) //nolint:errorlint // the very type is promised
	if !ok || len(errs) == 0 || len(errs) > MaxErrors {
		t.Fatalf("got %T %v, want Errors", err, err)
	}
	for _, e := range errs {
		if strings.ContainsFunc(e.Error(), steersTerminal) || len(e.Error()) > 2000 {
			t.Fatalf("got %q, which can't be shown", e.Error())
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := os.ReadFile("testdata/valid/full.json")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
