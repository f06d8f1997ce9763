package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/job"
	"slipway/test/eventually"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHelp pins the help of every command: it is the interface.
func TestHelp(t *testing.T) {
	b := setup(t)
	for _, cmd := range []string{"", "run", "create", "status", "list", "logs", "result", "cancel", "dead", "context", "validate", "schema"} {
		out, _, code := b.run(append(strings.Fields(cmd), "--help")...)
		if code != 0 {
			t.Errorf("%s --help: exit code %d", cmd, code)
		}
		golden(t, "help_"+cmd, out)
	}
}

// TestList: the text view has ages and labels, and each filter narrows it.
func TestList(t *testing.T) {
	b := setup(t)
	b.withQueue()
	file := b.file("image: x\nsteps: [{run: 'true'}]\n")
	one, _, _ := b.run("create", "--name", "one", "--label", "team=web", file)
	two, _, _ := b.run("create", "--name", "two", "--label", "team=db", "--label", "x=y", file)
	one, two = strings.TrimSpace(one), strings.TrimSpace(two)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"all, newest first": {nil, []string{two, one}},
		"a label":           {[]string{"--label", "team=web"}, []string{one}},
		"two labels":        {[]string{"--label", "team=db", "--label", "x=y"}, []string{two}},
		"labels of two":     {[]string{"--label", "team=web", "--label", "x=y"}, nil},
		"since":             {[]string{"--since", "1h"}, []string{two, one}},
		"since days":        {[]string{"--since", "7d", "--limit", "1"}, []string{two}},
		"since a time":      {[]string{"--since", time.Now().Add(-time.Hour).Format(time.RFC3339)}, []string{two, one}},
		"since now":         {[]string{"--since", "0s"}, nil},
		"a state":           {[]string{"--state", "failed"}, nil},
	} {
		out, errOut, code := b.run(append([]string{"list"}, tc.args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
		var got []string
		for _, l := range lines {
			got = append(got, strings.Fields(l)[0])
		}
		if code != 0 || !slices.Equal(got, tc.want) {
			t.Errorf("%s: code %d, stderr %q, got %v, want %v", name, code, errOut, got, tc.want)
		}
	}
	if out, _, _ := b.run("list"); !regexp.MustCompile(`queued +default +0 +\d+s ago +two +team=db x=y\n`).MatchString(out) {
		t.Errorf("got %q, want age, name and labels", out)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.TrimSuffix(name, "_")+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}

func TestUsageErrors(t *testing.T) {
	b := setup(t)
	id := string(job.NewID())
	good := b.file("image: x\nsteps: [{run: 'true'}]\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such command":    {[]string{"frobnicate"}, "unknown command"},
		"no such flag":       {[]string{"run", "--frobnicate", good}, "unknown flag"},
		"no file given":      {[]string{"run"}, "want one FILE"},
		"no such file":       {[]string{"run", "/no/such/file"}, "/no/such/file"},
		"not an id":          {[]string{"status", "17"}, "ULID"},
		"not a state":        {[]string{"list", "--state", "sleeping"}, "scheduled"},
		"not a since":        {[]string{"list", "--since", "soon"}, "--since"},
		"a time to come":     {[]string{"list", "--since", "-2h"}, "future"},
		"not a list's label": {[]string{"list", "--label", "x"}, "key=value"},
		"not a limit":        {[]string{"list", "--limit", "0"}, "--limit"},
		"not an output":      {[]string{"status", "-o", "xml", id}, "text or json"},
		"not a label":        {[]string{"create", "--label", "x", good}, "key=value"},
		"not a queue":        {[]string{"list", "--queue", "X Y"}, "--queue"},
		"a time gone by":     {[]string{"create", "--not-before", "-2h", good}, `--not-before "-2h": lies in the past`},
		"not a time":         {[]string{"create", "--not-before", "soon", good}, "--not-before"},
		"not a priority":     {[]string{"create", "--priority", "urgent", good}, "priority"},
		"id that is no ULID": {[]string{"create", "--id", "x", good}, "--id"},
		"bad variable":       {[]string{"create", "--env", "A B=x", good}, "env"},
	} {
		out, errOut, code := b.run(tc.args...)
		if code != 2 || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want code 2 and %q on stderr", name, code, out, errOut, tc.want)
		}
	}
}

func TestQueueAway(t *testing.T) {
	b := setup(t)
	b.app.sys.Environ = []string{"SLIPWAY_NATS_URL=nats://me:secret@127.0.0.1:1"}
	_, errOut, code := b.run("status", string(job.NewID()))
	if code != 3 || !strings.Contains(errOut, "SLIPWAY_NATS_URL") || !strings.Contains(errOut, "127.0.0.1:1") || strings.Contains(errOut, "secret") {
		t.Errorf("code %d, stderr %q", code, errOut)
	}
}

// TestMisspelledVariable: said once, on stderr, and not of what only a worker knows.
func TestMisspelledVariable(t *testing.T) {
	b := setup(t)
	b.withQueue()
	b.app.sys.Environ = []string{"SLIPWAY_NATS_ULR=nats://elsewhere:4222", "SLIPWAY_SLOTS=4", "SLIPWAY_S3_BUCKET=work", "SLIPWAY_CONFIG=worker.yaml"}
	out, errOut, code := b.run("list", "-o", "json")
	const want = `variable SLIPWAY_NATS_ULR is set, but there is no such setting: did you mean "SLIPWAY_NATS_URL"?` + "\n"
	if code != 0 || out != "" || errOut != want {
		t.Errorf("code %d, stdout %q, stderr %q, want 0, nothing and %q", code, out, errOut, want)
	}
}

func TestSettings_Refused(t *testing.T) {
	b := setup(t)
	b.app.sys.Environ = []string{"SLIPWAY_NATS_PREFIX=A.B"}
	_, errOut, code := b.run("list", "--nats-url", "http://me:secret@x", "--nats-creds", "/no/such")
	for _, want := range []string{"--nats-url: want", "--nats-creds: want", "/no/such", "variable SLIPWAY_NATS_PREFIX: want"} {
		if code != 2 || !strings.Contains(errOut, want) || strings.Contains(errOut, "secret") {
			t.Errorf("code %d, stderr %q, want 2 and %q", code, errOut, want)
		}
	}
}

func TestValidate(t *testing.T) {
	b := setup(t)
	bad := b.file("image: x\nsteps:\n  - run: echo\n    timeut: 3s\n  - {}\n")
	good := b.file("image: x\nsteps: [{run: 'true'}]\n")
	out, _, code := b.run("validate", good, bad)
	if code != 2 || !strings.Contains(out, good+": valid, 1 step") || !strings.Contains(out, bad+":4:5: steps[0].timeut:") || !strings.Contains(out, bad+":5:") {
		t.Errorf("code %d, output:\n%s", code, out)
	}
	out, _, code = b.run("validate", "-o", "json", bad)
	var v report
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 2 || v.Valid || len(v.Errors) != 2 || v.Errors[0].Line != 4 || v.Errors[0].Path != "steps[0].timeut" {
		t.Errorf("json: code %d, %v, %+v", code, err, v)
	}
	b.stdin(`{"image":"x","steps":[{"run":"true"}]}`)
	if out, _, code = b.run("validate", "-"); code != 0 {
		t.Errorf("JSON on stdin: code %d, %s", code, out)
	}
}

func TestSchema(t *testing.T) {
	b := setup(t)
	out, _, code := b.run("schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(out), &schema); err != nil || code != 0 || schema["$schema"] == nil {
		t.Errorf("code %d, %v, %.100s", code, err, out)
	}
}

// TestExamples: what the README tells people to run is valid.
func TestExamples(t *testing.T) {
	b := setup(t)
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found: %v", err)
	}
	if out, _, code := b.run(append([]string{"validate", "../../examples/hello.yaml"}, files...)...); code != 0 {
		t.Errorf("code %d:\n%s", code, out)
	}
}

// TestOutcomes runs jobs with every outcome that a user can cause, through queue, worker and boxes.
func TestOutcomes(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	for _, tc := range []struct {
		name, spec string
		code       int
		outcome    job.Outcome
		reason     job.Reason
	}{
		{"succeeded", "image: x\nsteps: [{run: echo hi}]", 0, job.Succeeded, ""},
		{"failed", "image: x\nsteps: [{run: exit 7}]", 1, job.Failed, job.ReasonExit},
		{"timed out", "image: x\nsteps: [{run: sleep 60, timeout: 1s, grace: 0s}]", 124, job.TimedOut, job.ReasonStepTimeout},
		{"errored", "image: x\nresources: {cpus: 500}\nsteps: [{run: 'true'}]", 3, job.Errored, job.ReasonPolicyDenied},
	} {
		b.stdin(tc.spec)
		out, errOut, code := b.run("run", "-o", "json", "-")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var r job.Result
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
			t.Fatalf("%s: last line is no result: %v\n%s%s", tc.name, err, out, errOut)
		}
		if code != tc.code || r.Outcome != tc.outcome || r.Reason != tc.reason {
			t.Errorf("%s: code %d, %s/%s, want %d, %s/%s", tc.name, code, r.Outcome, r.Reason, tc.code, tc.outcome, tc.reason)
		}
		if _, _, again := b.run("result", string(r.JobID)); again != tc.code {
			t.Errorf("%s: exit code of result %d, want %d", tc.name, again, tc.code)
		}
		if _, _, again := b.run("logs", "-f", string(r.JobID)); again != tc.code {
			t.Errorf("%s: exit code of logs -f %d, want %d", tc.name, again, tc.code)
		}
	}
}

func TestRun_Text(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	b.stdin("name: greeter\nimage: x\nsteps:\n  - {name: greet, run: 'printf \"\\033[31mhi\\033[0m\\n\"; echo oops >&2; echo $WHO'}\n")
	out, errOut, code := b.run("run", "--env", "WHO=you", "--label", "a=b", "-")
	if code != 0 || out != "hi\nyou\n" {
		t.Errorf("code %d, stdout %q, want 0 and the output without escapes", code, out)
	}
	for _, want := range []string{"(greeter) is in queue default", "step 1: greet", "oops", "✓ succeeded", "succeeded in"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("stderr lacks %q:\n%s", want, errOut)
		}
	}
	out, _, _ = b.run("list", "-o", "json")
	var st job.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil || st.State != job.StateDone || st.Labels["a"] != "b" {
		t.Errorf("list: %v, %s", err, out)
	}
	if out, _, _ = b.run("logs", "--raw", string(st.ID)); !strings.Contains(out, "\x1b[31mhi") {
		t.Errorf("logs --raw changed the output: %q", out)
	}
	if out, _, code = b.run("status", string(st.ID)); code != 0 || !strings.Contains(out, "greeter") || !strings.Contains(out, "done") {
		t.Errorf("status: code %d\n%s", code, out)
	}
	if out, _, code = b.run("result", string(st.ID)); code != 0 || !strings.Contains(out, "step 1: greet") {
		t.Errorf("result: code %d\n%s", code, out)
	}
}

// TestRun_Interrupted: the first interrupt cancels the job, always-steps still run.
func TestRun_Interrupted(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	b.stdin("image: x\nsteps:\n  - {run: echo started; sleep 60, grace: 0s}\n  - {run: echo always, if: always}\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually.True(t, 20*time.Second, "the step prints", func() bool { return strings.Contains(b.out.String(), "started") })
		b.interrupts <- struct{}{}
	}()
	out, errOut, code := b.run("run", "-")
	<-done
	if code != 130 || !strings.Contains(out, "always") || !strings.Contains(errOut, "canceling the job") {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
}

func TestWithoutWorker(t *testing.T) {
	b := setup(t)
	b.withQueue()
	file := b.file("image: x\nsteps: [{run: 'true'}]\n")
	out, errOut, code := b.run("create", "--queue", "default", file)
	id, err := job.ParseID(strings.TrimSpace(out))
	if code != 0 || err != nil {
		t.Fatalf("create: code %d, %v\n%s%s", code, err, out, errOut)
	}
	if _, errOut, code = b.run("create", "--id", string(id), file); code != 0 || !strings.Contains(errOut, "before") {
		t.Errorf("create with the same id: code %d, %s", code, errOut)
	}
	if out, _, code = b.run("status", "-o", "json", string(id)); code != 0 || !strings.Contains(out, `"state":"queued"`) {
		t.Errorf("status: code %d, %s", code, out)
	}
	if _, errOut, code = b.run("result", string(id)); code != 3 || !strings.Contains(errOut, "--wait") {
		t.Errorf("result of a job that waits: code %d, %s", code, errOut)
	}
	if out, _, code = b.run("cancel", string(id)); code != 0 || !strings.Contains(out, "was queued") {
		t.Errorf("cancel: code %d, %s", code, out)
	}
	if _, _, code = b.run("result", "--wait", string(id)); code != 130 {
		t.Errorf("result of a canceled job: code %d, want 130", code)
	}
	if out, _, code = b.run("cancel", "-o", "json", string(id)); code != 0 || !strings.Contains(out, `"met":"canceled"`) {
		t.Errorf("cancel that comes too late: code %d, %s", code, out)
	}
	if _, errOut, code = b.run("status", string(job.NewID())); code != 2 || !strings.Contains(errOut, "not found") {
		t.Errorf("unknown job: code %d, %s", code, errOut)
	}
	if out, _, code = b.run("dead", "list"); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("dead list: code %d, %s", code, out)
	}
}

func TestNotBefore(t *testing.T) {
	b := setup(t)
	b.withQueue()
	out, _, _ := b.run("create", "--not-before", "1h", b.file("image: x\nsteps: [{run: 'true'}]\n"))
	id := strings.TrimSpace(out)
	out, _, _ = b.run("status", "-o", "json", id)
	var st job.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil || st.State != job.StateScheduled || time.Until(st.EligibleAt) < 55*time.Minute {
		t.Errorf("got %v, %s", err, out)
	}
}
