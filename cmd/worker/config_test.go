package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/settings"
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
		"s3.secret_key": {"********", "file"}, // a key of somebody else's pair would not go with it
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
		"unknown key":          {file: "slots: 1\nnats: {ulr: x}\n", want: `:2:8: nats.ulr: no such setting: did you mean "nats.url"?`},
		"no such file":         {args: []string{"--config", "/no/such"}, want: "/no/such"},
		"no such file, either": {environ: "SLIPWAY_CONFIG=/no/such", want: "variable SLIPWAY_CONFIG: "},
		"clocks out of order":  {args: []string{"--timing-lease", "1h"}, want: "--timing-lease: lease (1h0m0s) must be shorter than ack_wait (1m0s), or"},
		"endpoint, no bucket":  {args: []string{"--s3-endpoint", "http://x"}, want: "SLIPWAY_S3_BUCKET"},
		"half of the keys":     {environ: "SLIPWAY_S3_ACCESS_KEY=x", want: "SLIPWAY_S3_SECRET_KEY"},
		"a token without keys": {environ: "SLIPWAY_S3_SESSION_TOKEN=x", want: "SLIPWAY_S3_SESSION_TOKEN: s3.access_key and s3.secret_key"},
		"two credentials":      {args: []string{"--nats-creds", exampleCreds(t), "--nats-nkey", exampleNkey(t)}, want: "nats.creds and nats.nkey exclude each other"},
		"a KMS key alone":      {args: []string{"--s3-sse-kms-key-id", "x"}, want: "--s3-sse-kms-key-id: a KMS key goes with aws:kms"},
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

// TestSettings_Refused: a bad value of every setting is refused by every command that reads it, by the name under which it was
// given. What has no line here may have any value.
func TestSettings_Refused(t *testing.T) {
	bad := map[string]string{
		"name": "Has Spaces", "slots": "-1", "queues": "a,B", "queue_weights": "x=2", "policy": "/no/such", "nats.url": "http://x", "nats.creds": "/no/such",
		"nats.prefix": "A.B", "nats.replicas": "2", "nats.max_jobs": "0", "nats.max_job_bytes": "1k", "nats.events_age": "1s", "nats.events_bytes": "many",
		"nats.results_age": "-1h", "crash_budget": "-1", "s3.endpoint": "s3:7070", "s3.region": "mars west", "s3.bucket": "a/b", "s3.prefix": "/x",
		"s3.access_key": "a b", "s3.secret_key": "a\tb", "s3.path_style": "perhaps", "s3.create_bucket": "perhaps",
		"job_logs.step_limit": "1KiB", "job_logs.limit": "1KiB", "job_logs.live_limit": "1KiB", "docker.host": "/var/run/docker.sock", "metrics.addr": ":9464", "soft_stop": "-1s", "timing.dead_man": "1h", "timing.lease": "1h",
		"nats.nkey": "/no/such", "nats.tls_ca": "/no/such", "nats.tls_cert": "/no/such", "nats.tls_key": "/no/such", "nats.tls_first": "perhaps", "nats.inbox_prefix": "a.>",
		"s3.session_token": "a b", "s3.sse": "rot13", "s3.sse_kms_key_id": "x", "docker.config": "/no/such", "docker.auth": `{"auths": {"ghcr.io": {"auth": "x"}}}`,
		"docker.runtime": "run sc", "docker.cgroup_parent": "../x", "docker.parallel": "-1", "docker.pull_stall": "1ms", "docker.min_free": "some", "pull_timeout": "0s", "sync_timeout": "-1s",
		"cleanup_timeout": "0s", "infra_budget": "-1", "infra_backoff": "0s", "job_logs.excerpt": "1MiB",
		"nats.max_scheduled_bytes": "1k", "nats.results_bytes": "1k", "nats.dead_bytes": "1k", "nats.records_bytes": "1k", "state_dir": "here",
		"timing.ack_wait": "1s", "timing.heartbeat": "1h", "log.level": "loud", "log.format": "xml",
	}
	for _, s := range addConfig(pflag.NewFlagSet("", pflag.ContinueOnError)).set.List() {
		value, ok := bad[s.Key]
		if !ok {
			t.Errorf("%s: no bad value is tried", s.Key)
			continue
		}
		group, key, nested := strings.Cut(s.Key, ".")
		file := fmt.Sprintf("%s: %q\n", s.Key, value)
		if nested {
			file = fmt.Sprintf("%s:\n  %s: %q\n", group, key, value)
		}
		file = writeFile(t, file)
		for _, cmd := range []string{"config", "doctor", "serve"} {
			for _, given := range []struct {
				args    []string
				environ string
				want    string
			}{
				{[]string{s.Flag() + "=" + value}, "", s.Flag()},
				{nil, s.Env() + "=" + value, s.Env()},
				{[]string{"--config", file}, "", file + ":"},
			} {
				if s.Secret && given.want == s.Flag() {
					continue
				}
				out, errOut, code := setup(t, given.environ).run(append([]string{cmd}, given.args...)...)
				if code != 2 || out != "" || !strings.Contains(errOut, given.want) {
					t.Errorf("%s of %s: code %d, stdout %.40q, stderr %q, want 2, and that it names %s", cmd, s.Key, code, out, errOut, given.want)
				}
				if s.Secret && strings.Contains(errOut, value) {
					t.Errorf("%s of %s: the secret is in %q", cmd, s.Key, errOut)
				}
			}
		}
	}
}

// TestSettings_AreNoMisspellings: submit, which has the settings of the queue alone, does not take a worker's variable for one
// of them that is misspelled.
func TestSettings_AreNoMisspellings(t *testing.T) {
	set := settings.New(pflag.NewFlagSet("", pflag.ContinueOnError))
	new(cli.NATS).Register(set)
	environ := []string{configVariable + "=x"}
	for _, s := range addConfig(pflag.NewFlagSet("", pflag.ContinueOnError)).set.List() {
		environ = append(environ, s.Env()+"=x")
	}
	for _, v := range set.UnknownEnv(environ) {
		if v.Meant != "" {
			t.Errorf("submit would say: %s", v)
		}
	}
}

// TestSettings_RefusedByTools: dev and run have some of them, too.
func TestSettings_RefusedByTools(t *testing.T) {
	bad := map[string]string{"--slots": "-1", "--soft-stop": "-1s", "--policy": writeFile(t, "alow: []"), "--docker-host": "x", "--log-level": "wran", "--log-format": "xml"}
	for flag, value := range bad {
		for _, cmd := range [][]string{{"dev"}, {"run", "-"}} {
			b := setup(t)
			if _, errOut, code := b.run(append(cmd, flag, value)...); code != 2 || !strings.Contains(errOut, flag) {
				t.Errorf("%v %s %s: code %d, stderr %q, want 2 and the flag", cmd, flag, value, code, errOut)
			}
		}
	}
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
