package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"slipway/container/docker"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/metrics"
	"slipway/runner"
)

// given is what gives a field of a library's Config its value: the setting with that key, or, where the worker has no
// setting for it, the reason.
type given struct{ setting, reason string }

func by(setting string) given { return given{setting: setting} }

func without(reason string) given { return given{reason: reason} }

// fields are those of all Configs that the worker hands to the libraries. A field that is not here has no setting: add one,
// or say why it needs none.
var fields = map[string]given{
	"docker.Host": by("docker.host"), "docker.Credentials": by("docker.config"), "docker.Parallel": by("docker.parallel"), "docker.Runtime": by("docker.runtime"),
	"docker.CgroupParent": by("docker.cgroup_parent"), "docker.PullStall": by("docker.pull_stall"), "docker.MinFree": by("docker.min_free"),
	"docker.Auth": without("for programs that embed a worker; docker.auth gives the worker's through Credentials"),

	"natsqueue.URL": by("nats.url"), "natsqueue.CredsFile": by("nats.creds"), "natsqueue.NkeyFile": by("nats.nkey"), "natsqueue.CAFile": by("nats.tls_ca"),
	"natsqueue.CertFile": by("nats.tls_cert"), "natsqueue.KeyFile": by("nats.tls_key"), "natsqueue.TLSFirst": by("nats.tls_first"),
	"natsqueue.InboxPrefix": by("nats.inbox_prefix"), "natsqueue.Prefix": by("nats.prefix"), "natsqueue.Queues": by("queues"),
	"natsqueue.Timing.DeadMan": by("timing.dead_man"), "natsqueue.Timing.Lease": by("timing.lease"), "natsqueue.Timing.AckWait": by("timing.ack_wait"),
	"natsqueue.Timing.Heartbeat": by("timing.heartbeat"), "natsqueue.Replicas": by("nats.replicas"), "natsqueue.MaxJobs": by("nats.max_jobs"),
	"natsqueue.MaxJobBytes": by("nats.max_job_bytes"), "natsqueue.EventsAge": by("nats.events_age"), "natsqueue.EventsBytes": by("nats.events_bytes"),
	"natsqueue.MaxScheduledBytes": by("nats.max_scheduled_bytes"), "natsqueue.ResultsBytes": by("nats.results_bytes"),
	"natsqueue.DeadBytes": by("nats.dead_bytes"), "natsqueue.RecordsBytes": by("nats.records_bytes"),
	"natsqueue.ResultsAge": by("nats.results_age"), "natsqueue.CrashBudget": by("crash_budget"),
	"natsqueue.Name":      without("made of the program's name and the setting name"),
	"natsqueue.InProcess": without("an embedded server, which the worker does not have"),
	"natsqueue.OnError":   without("the worker logs and counts the errors"),

	"natsqueue.Consumer.Worker": by("name"), "natsqueue.Consumer.Queues": by("queues"), "natsqueue.Consumer.Weights": by("queue_weights"),
	"natsqueue.Consumer.Slots": by("slots"), "natsqueue.Consumer.StateDir": by("state_dir"),
	"natsqueue.Consumer.Version": without("that of the build"),

	"s3store.Endpoint": by("s3.endpoint"), "s3store.Region": by("s3.region"), "s3store.Bucket": by("s3.bucket"), "s3store.AccessKey": by("s3.access_key"),
	"s3store.SecretKey": by("s3.secret_key"), "s3store.SessionToken": by("s3.session_token"), "s3store.PathStyle": by("s3.path_style"), "s3store.SSE": by("s3.sse"),
	"s3store.SSEKMSKeyID": by("s3.sse_kms_key_id"),
	"s3store.HTTPClient":  without("for tests; the worker's own follows HTTPS_PROXY and so on"),

	"runner.Name": by("name"), "runner.Prefix": by("s3.prefix"), "runner.Slots": by("slots"), "runner.Policy": by("policy"), "runner.Resources": by("policy"),
	"runner.Timing.DeadMan": by("timing.dead_man"), "runner.Timing.Lease": by("timing.lease"), "runner.Timing.AckWait": by("timing.ack_wait"),
	"runner.Timing.Heartbeat": by("timing.heartbeat"), "runner.SoftStop": by("soft_stop"), "runner.CleanupTimeout": by("cleanup_timeout"),
	"runner.PullTimeout": by("pull_timeout"), "runner.SyncTimeout": by("sync_timeout"), "runner.InfraBudget": by("infra_budget"),
	"runner.InfraBackoff": by("infra_backoff"), "runner.StepLogLimit": by("job_logs.step_limit"), "runner.JobLogLimit": by("job_logs.limit"),
	"runner.LiveLimit": by("job_logs.live_limit"), "runner.Excerpt": by("job_logs.excerpt"),
	"runner.Queue":       without("made of the settings of nats"),
	"runner.Provider":    without("made of the settings of docker"),
	"runner.Store":       without("made of the settings of s3"),
	"runner.StoreName":   without("made of s3.bucket and s3.endpoint"),
	"runner.Decider":     without("for programs that embed a worker; the worker runs the steps of the job"),
	"runner.Observation": without("has no effect without a Decider"),
	"runner.Logger":      without("made of the settings of log"),
	"runner.Observer":    without("the metrics"),

	"metrics.Gatherer": without("the worker's own registry"),
	"metrics.Health":   without("the worker's own checks"),
}

// configs are what the worker hands to the libraries with the settings of environ, by the beginning of their fields' names.
func configs(t *testing.T, environ []string) map[string]any {
	t.Helper()
	c := addConfig(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := c.load(environ); err != nil {
		t.Fatal(err)
	}
	s := c.service(zap.NewNop())
	c.prepareQueue(s.errors.note)
	return map[string]any{
		"docker.": c.docker.config(), "natsqueue.": c.nats.Config("x"), "natsqueue.Consumer.": s.consumerConfig(), "s3store.": c.s3.Config(),
		"runner.": s.runnerConfig(runner.NopObserver{}), "metrics.": metrics.HandlerConfig{},
	}
}

// eachField calls fn with the fields of v. The parts of a Timing are fields of their own; a policy is a file's as a whole.
func eachField(name string, v reflect.Value, fn func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		field := name + v.Type().Field(i).Name
		if v.Field(i).Type() == reflect.TypeFor[job.Timing]() {
			eachField(field+".", v.Field(i), fn)
			continue
		}
		fn(field, v.Field(i))
	}
}

// TestFields_Listed: every field of every Config has a setting that exists, or a reason.
func TestFields_Listed(t *testing.T) {
	set := addConfig(pflag.NewFlagSet("", pflag.ContinueOnError)).set
	seen, settings, exceptions := map[string]bool{}, map[string]bool{}, 0
	for prefix, cfg := range configs(t, nil) {
		eachField(prefix, reflect.ValueOf(cfg), func(name string, _ reflect.Value) {
			seen[name] = true
			from, ok := fields[name]
			switch {
			case !ok:
				t.Errorf("%s has no setting: add one, or say in fields why it needs none", name)
			case from.reason != "":
				exceptions++
			case set.Lookup(from.setting) == nil:
				t.Errorf("%s is given by the setting %s, which does not exist", name, from.setting)
			default:
				settings[from.setting] = true
			}
		})
	}
	for name := range fields {
		if !seen[name] {
			t.Errorf("%s is no field (any more)", name)
		}
	}
	t.Logf("%d fields: %d have one of %d settings, %d have a reason; %d settings in all", len(seen), len(seen)-exceptions, len(settings), exceptions, len(set.List()))
}

// TestFields_Given: the value of each setting arrives in its field.
func TestFields_Given(t *testing.T) {
	cert, key := examplePair(t)
	values := map[string]string{
		"docker.host": "tcp://10.0.0.7:2376", "docker.config": "off", "docker.parallel": "7", "docker.runtime": "runsc", "docker.cgroup_parent": "x.slice",
		"docker.pull_stall": "3m0s", "docker.min_free": "2000003", "nats.url": "nats://queue:4222", "nats.creds": exampleCreds(t), "nats.tls_ca": cert, "nats.tls_cert": cert, "nats.tls_key": key,
		"nats.tls_first": "true", "nats.inbox_prefix": "_INBOX_x", "nats.prefix": "other", "queues": "a", "queue_weights": "a=3", "timing.dead_man": "10s",
		"timing.lease": "21s", "timing.ack_wait": "32s", "timing.heartbeat": "5s", "nats.replicas": "3", "nats.max_jobs": "17", "nats.max_job_bytes": "2000001",
		"nats.events_age": "1h1m0s", "nats.events_bytes": "200000001", "nats.results_age": "1h2m0s", "nats.max_scheduled_bytes": "2000002",
		"nats.results_bytes": "2000003", "nats.dead_bytes": "2000004", "nats.records_bytes": "2000005", "state_dir": "/var/lib/x", "crash_budget": "5", "name": "w1", "slots": "9",
		"s3.endpoint": "http://s3:7070", "s3.region": "mars-1", "s3.bucket": "work", "s3.access_key": "AKIA", "s3.secret_key": "hunter2", "s3.session_token": "token",
		"s3.path_style": "false", "s3.sse": "aws:kms", "s3.sse_kms_key_id": "alias/x", "s3.prefix": "team/", "policy": "testdata/policy.yaml", "soft_stop": "6m0s",
		"cleanup_timeout": "2m0s", "pull_timeout": "11m0s", "sync_timeout": "16m0s", "infra_budget": "4", "infra_backoff": "7s", "job_logs.step_limit": "100001",
		"job_logs.limit": "200002", "job_logs.live_limit": "300003", "job_logs.excerpt": "1001",
	}
	var environ []string
	set := addConfig(pflag.NewFlagSet("", pflag.ContinueOnError)).set
	for k, v := range values {
		environ = append(environ, set.Lookup(k).Env()+"="+v)
	}
	check := func(environ []string, values map[string]string) {
		t.Helper()
		defaults := configs(t, nil)
		for prefix, cfg := range configs(t, environ) {
			plain := map[string]reflect.Value{}
			eachField(prefix, reflect.ValueOf(defaults[prefix]), func(name string, v reflect.Value) { plain[name] = v })
			eachField(prefix, reflect.ValueOf(cfg), func(name string, v reflect.Value) {
				want, ok := values[fields[name].setting]
				switch {
				case !ok:
					return
				case v.Kind() == reflect.Func:
					if v.IsNil() == plain[name].IsNil() {
						t.Errorf("%s is as without the setting %s", name, fields[name].setting)
					}
				case v.Kind() == reflect.Slice || v.Kind() == reflect.Map || v.Kind() == reflect.Struct:
					if reflect.DeepEqual(v.Interface(), plain[name].Interface()) {
						t.Errorf("%s is as without the setting %s: %v", name, fields[name].setting, v)
					}
				case fmt.Sprint(v.Interface()) != want:
					t.Errorf("%s: got %v, want %s, the setting %s", name, v, want, fields[name].setting)
				}
			})
		}
	}
	t.Setenv("HOME", t.TempDir())
	check(environ, values)
	nkey := exampleNkey(t)
	check([]string{"SLIPWAY_NATS_NKEY=" + nkey}, map[string]string{"nats.nkey": nkey})
	for from := range fields {
		if key := fields[from].setting; key != "" && key != "nats.nkey" && values[key] == "" {
			t.Errorf("no value of %s is tried", key)
		}
	}
}

// TestFields_None: what is 0 to a person is -1 to a Config, whose 0 is the default.
func TestFields_None(t *testing.T) {
	got := configs(t, []string{"SLIPWAY_CRASH_BUDGET=0", "SLIPWAY_INFRA_BUDGET=0", "SLIPWAY_SOFT_STOP=0s", "SLIPWAY_DOCKER_MIN_FREE=0"})
	if n := got["natsqueue."].(natsqueue.Config).CrashBudget; n >= 0 {
		t.Errorf("crash_budget 0: got %d, want less than 0", n)
	}
	if n := got["docker."].(docker.Config).MinFree; n >= 0 {
		t.Errorf("docker.min_free 0: got %d, want less than 0", n)
	}
	r := got["runner."].(runner.Config)
	if r.InfraBudget >= 0 || r.SoftStop >= 0 {
		t.Errorf("infra_budget and soft_stop 0: got %d, %v, want less than 0", r.InfraBudget, r.SoftStop)
	}
}

// TestDockerCredentials: where those of the registries come from.
func TestDockerCredentials(t *testing.T) {
	const auths = `{"auths": {"ghcr.io": {"username": "me", "password": %q}}}`
	home, other := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for dir, password := range map[string]string{filepath.Join(home, ".docker"): "home", other: "folder"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, auths, password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf(auths, "text")
	for name, tc := range map[string]struct {
		environ []string
		want    string
	}{
		"default":             {nil, "home"},
		"a folder":            {[]string{"SLIPWAY_DOCKER_CONFIG=" + other}, "folder"},
		"the docker's folder": {[]string{"DOCKER_CONFIG=" + other}, "folder"},
		"a text":              {[]string{"SLIPWAY_DOCKER_AUTH=" + text, "SLIPWAY_DOCKER_CONFIG=" + other}, "text"},
		"the text of a CI":    {[]string{"DOCKER_AUTH_CONFIG=" + text}, "text"},
		"off":                 {[]string{"SLIPWAY_DOCKER_CONFIG=off"}, ""},
	} {
		cfg := configs(t, tc.environ)["docker."].(docker.Config)
		var got docker.Auth
		var err error
		if cfg.Credentials != nil {
			got, err = cfg.Credentials(t.Context(), "ghcr.io")
		}
		if err != nil || got.Password != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, got.Password, err, tc.want)
		}
	}
}

// examplePair makes a certificate and its key.
func examplePair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

func exampleSeed(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(seed)
}

func exampleNkey(t *testing.T) string { return writeFile(t, exampleSeed(t)) }

func exampleCreds(t *testing.T) string {
	return writeFile(t, strings.Join([]string{
		"-----BEGIN NATS USER JWT-----", "e30.e30.e30", "------END NATS USER JWT------", "",
		"-----BEGIN USER NKEY SEED-----", exampleSeed(t), "------END USER NKEY SEED------", "",
	}, "\n"))
}
