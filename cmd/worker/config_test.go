package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/container"
)

func TestHelp(t *testing.T) {
	b := setup(t)
	for _, cmd := range []string{"worker", "serve", "dev", "run", "doctor", "config"} {
		args := []string{cmd, "--help"}
		if cmd == "worker" {
			args = args[1:]
		}
		out, _, code := b.run(args...)
		if code != 0 {
			t.Errorf("%s --help: exit code %d", cmd, code)
		}
		golden(t, "help_"+cmd, out)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const exampleConfig = `
name: w1
slots: 4
queues: [fast, slow]
nats: {url: "nats://me:geheim@queue:4222", replicas: 3}
s3:
  endpoint: http://s3:7070
  bucket: work
  access_key: AKIA
  secret_key: hunter2
timing: {dead_man: 10s, lease: 20s, ack_wait: 30s, heartbeat: 5s}
soft_stop: 5m
`

func TestConfig_Precedence(t *testing.T) {
	file := writeFile(t, exampleConfig)
	b := setup(t, "SLIPWAY_CONFIG="+file, "SLIPWAY_SLOTS=8", "SLIPWAY_SLOT=9", "AWS_SECRET_ACCESS_KEY=other")
	out, errOut, code := b.run("config", "--queues", "only", "-o", "json")
	if code != 0 {
		t.Fatalf("code %d\n%s", code, errOut)
	}
	var rows []struct{ Key, Value, Source, Flag, Env string }
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	got := map[string][2]string{}
	for _, r := range rows {
		source, _, _ := strings.Cut(r.Source, " ")
		got[r.Key] = [2]string{r.Value, source}
	}
	for key, want := range map[string][2]string{
		"name":          {"w1", "file"},
		"slots":         {"8", "env"},
		"queues":        {"only", "flag"},
		"nats.url":      {"nats://me:xxxxx@queue:4222", "file"},
		"nats.replicas": {"3", "file"},
		"nats.prefix":   {"slipway", "default"},
		"s3.secret_key": {"********", "env"}, // even a variable of somebody else's wins over the file
		"s3.access_key": {"********", "file"},
		"timing.lease":  {"20s", "file"},
		"soft_stop":     {"5m0s", "file"},
		"metrics.addr":  {"127.0.0.1:9464", "default"},
	} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	if strings.Contains(out+errOut, "hunter2") || strings.Contains(out+errOut, "geheim") {
		t.Error("a secret was printed")
	}
	if !strings.Contains(errOut, "SLIPWAY_SLOT ") || strings.Contains(errOut, "SLIPWAY_CONFIG") {
		t.Errorf("stderr: got %q, want a word on SLIPWAY_SLOT alone", errOut)
	}
}

func TestConfig_ServePrintsTheSame(t *testing.T) {
	b := setup(t)
	want, _, _ := b.run("config", "--slots", "3")
	for _, args := range [][]string{{"serve", "--print-config", "--slots", "3"}, {"--print-config", "--slots", "3"}} {
		if got, errOut, code := b.run(args...); code != 0 || got != want {
			t.Errorf("%v: code %d, %s\n%s\nwant\n%s", args, code, errOut, got, want)
		}
	}
}

func TestConfig_Refused(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		environ string
		file    string
		want    string
	}{
		"unknown key":          {file: "slots: 1\nnats: {ulr: x}\n", want: ":2: nats.ulr: no such setting"},
		"no such file":         {args: []string{"--config", "/no/such"}, want: "/no/such"},
		"clocks out of order":  {args: []string{"--timing-lease", "1h"}, want: "ack_wait"},
		"slots below zero":     {args: []string{"--slots", "-1"}, want: "slots"},
		"endpoint, no bucket":  {args: []string{"--s3-endpoint", "http://x"}, want: "SLIPWAY_S3_BUCKET"},
		"half of the keys":     {environ: "SLIPWAY_S3_ACCESS_KEY=x", want: "SLIPWAY_S3_SECRET_KEY"},
		"no such level":        {args: []string{"--log-level", "loud"}, want: "log.level"},
		"no such format":       {environ: "SLIPWAY_LOG_FORMAT=xml", want: "log.format"},
		"a secret has no flag": {args: []string{"--s3-secret-key", "x"}, want: "unknown flag"},
		"an argument too much": {args: []string{"frobnicate"}, want: "unknown command"},
	} {
		b := setup(t, tc.environ)
		args := append([]string{"config"}, tc.args...)
		if tc.file != "" {
			args = append(args, "--config", writeFile(t, tc.file))
		}
		_, errOut, code := b.run(args...)
		if code != 2 || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d, stderr %q, want code 2 and %q", name, code, errOut, tc.want)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	p, defaults, err := parsePolicy([]byte(`
allow: [network_open]
images: [docker.io/library/]
max: {cpus: 1.5, memory: 4GiB, tmp: 1073741824}
defaults: {memory: 1GiB}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Allow) != 1 || p.Allow[0] != container.RelaxNetworkOpen || p.Max.Memory != 4<<30 || p.Max.Tmp != 1<<30 || p.Max.CPUs != 1.5 {
		t.Errorf("policy: %+v", p)
	}
	if want := (container.Resources{Memory: 1 << 30}); defaults != want {
		t.Errorf("defaults: got %+v, want %+v", defaults, want)
	}
	// What nobody asked for is cut to the bound, or every job would be refused.
	spec, err := p.Apply(container.Spec{Name: "x", Image: "docker.io/library/a", Resources: defaults})
	if got := spec.Resources; err != nil || got.CPUs != 1.5 || got.Memory != 1<<30 || got.Pids != container.DefaultResources().Pids {
		t.Errorf("resources of a job that asks for none: %+v, %v", got, err)
	}
	if p, _, err := parsePolicy(nil); err != nil || len(p.Allow) != 0 {
		t.Errorf("an empty file: %+v, %v, want the closed policy", p, err)
	}
}

func TestParsePolicy_Refuses(t *testing.T) {
	for in, want := range map[string]string{
		"allow: [everything]":         "everything",
		"alow: [network_open]":        "alow",
		"max: {memory: lots}":         "lots",
		"max: {memory: -1}":           "-1",
		"max: {cpus: -1}":             "cpus",
		"images: [busybox]":           "busybox",
		"allow: []\n---\nallow: []\n": "more than one document",
		"- allow":                     "",
	} {
		if _, _, err := parsePolicy([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("allow: [network_open]\nmax: {memory: 4GiB}\n"))
	f.Add([]byte("max: &a {cpus: *a}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, _, err := parsePolicy(in)
		if err == nil && p.Validate() != nil {
			t.Errorf("accepted an invalid policy: %+v", p)
		}
	})
}

// TestOpenPolicy: what dev and run are for must not be refused.
func TestOpenPolicy(t *testing.T) {
	spec := container.Spec{
		Name: "x", Network: container.NetworkOpen, User: container.User{},
		Relaxed: container.Relaxations(), Resources: container.Resources{CPUs: 64, Memory: 256 << 30, Tmp: 8 << 30},
	}
	if _, err := openPolicy().Apply(spec); err != nil {
		t.Errorf("Apply: %v", err)
	}
}

func TestJudgeClock(t *testing.T) {
	now := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]status{
		0: ok, 400 * time.Millisecond: ok, -900 * time.Millisecond: ok, 10 * time.Second: warn, -time.Minute: warn,
		10 * time.Minute: fail, -time.Hour: fail,
	} {
		if _, got, detail, _ := judgeClock(now.Add(off), now); got != want {
			t.Errorf("off by %v: got %s (%s), want %s", off, got, detail, want)
		}
	}
}
