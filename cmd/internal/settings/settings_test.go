package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type values struct {
	url, key string
	slots    int
	path     bool
	stop     time.Duration
	log      time.Duration
	queues   []string
}

func setup(t *testing.T, args ...string) (*Set, *values) {
	t.Helper()
	var v values
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s := New(flags)
	s.String(&v.url, "nats.url", "nats://default:4222", "where")
	s.Secret(&v.key, "s3.secret_key", "secret").AlsoEnv("AWS_SECRET_ACCESS_KEY")
	s.Bool(&v.path, "s3.path_style", false, "how")
	s.Int(&v.slots, "slots", 4, "how many")
	s.Duration(&v.stop, "soft_stop", 2*time.Minute, "how long")
	s.Duration(&v.log, "log.limit", 16<<20, "how much")
	s.Strings(&v.queues, "queues", []string{"default"}, "which")
	if err := flags.Parse(args); err != nil {
		t.Fatalf("parse %v: %v", args, err)
	}
	return s, &v
}

const file = `
# comment
nats:
  url: nats://file:4222
s3: {path_style: true, secret_key: file-secret}
slots: 7
soft_stop: 30s
log: {limit: 1048576ns}
queues: [one, two]
`

func TestResolve_Precedence(t *testing.T) {
	env := []string{"SLIPWAY_NATS_URL=nats://env:4222", "SLIPWAY_SLOTS=9", "SLIPWAY_QUEUES=three", "SLIPWAY_S3_SECRET_KEY=env-secret"}
	for name, tc := range map[string]struct {
		args   []string
		env    []string
		file   string
		want   values
		source map[string]string
	}{
		"defaults": {
			want:   values{url: "nats://default:4222", slots: 4, stop: 2 * time.Minute, log: 16 << 20, queues: []string{"default"}},
			source: map[string]string{"nats.url": "default", "slots": "default"},
		},
		"file over defaults": {
			file:   file,
			want:   values{url: "nats://file:4222", key: "file-secret", slots: 7, path: true, stop: 30 * time.Second, log: 1 << 20, queues: []string{"one", "two"}},
			source: map[string]string{"nats.url": "file c.yaml:4", "slots": "file c.yaml:6"},
		},
		"env over file": {
			file: file, env: env,
			want:   values{url: "nats://env:4222", key: "env-secret", slots: 9, path: true, stop: 30 * time.Second, log: 1 << 20, queues: []string{"three"}},
			source: map[string]string{"nats.url": "env SLIPWAY_NATS_URL", "s3.path_style": "file c.yaml:5"},
		},
		"flags over all": {
			file: file, env: env, args: []string{"--nats-url=nats://flag:4222", "--slots", "1", "--s3-path-style=false", "--queues", "a,b", "--queues", "c"},
			want:   values{url: "nats://flag:4222", key: "env-secret", slots: 1, stop: 30 * time.Second, log: 1 << 20, queues: []string{"c"}},
			source: map[string]string{"nats.url": "flag", "slots": "flag", "queues": "flag", "s3.secret_key": "env SLIPWAY_S3_SECRET_KEY"},
		},
		"empty variable is unset": {
			file: file, env: []string{"SLIPWAY_SLOTS="},
			want: values{url: "nats://file:4222", key: "file-secret", slots: 7, path: true, stop: 30 * time.Second, log: 1 << 20, queues: []string{"one", "two"}},
		},
		"somebody else's variable comes last": {
			env:    []string{"AWS_SECRET_ACCESS_KEY=aws"},
			want:   values{url: "nats://default:4222", key: "aws", slots: 4, stop: 2 * time.Minute, log: 16 << 20, queues: []string{"default"}},
			source: map[string]string{"s3.secret_key": "env AWS_SECRET_ACCESS_KEY"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := setup(t, tc.args...)
			if err := s.Resolve(tc.env, "c.yaml", strings.NewReader(tc.file)); err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			if got, want := *v, tc.want; got.url != want.url || got.key != want.key || got.slots != want.slots || got.path != want.path ||
				got.stop != want.stop || got.log != want.log || !slices.Equal(got.queues, want.queues) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			for key, want := range tc.source {
				if got := s.Lookup(key).Source(); got != want {
					t.Errorf("source of %s = %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestResolve_Refuses(t *testing.T) {
	for name, tc := range map[string]struct {
		env  string
		file string
		want []string // parts of the message
	}{
		"unknown key":          {file: "slots: 1\nnats:\n  ulr: x\n", want: []string{"c.yaml:3:3", "nats.ulr", "did you mean \"nats.url\""}},
		"far from every key":   {file: "zzzzzzzz: 1", want: []string{"c.yaml:1", "zzzzzzzz", "no such setting"}},
		"wrong type":           {file: "slots: many", want: []string{"c.yaml:1", "slots", "integer"}},
		"group without keys":   {file: "nats: nats://x", want: []string{"c.yaml:1", "nats", "key: value"}},
		"value with keys":      {file: "slots: {a: 1}", want: []string{"c.yaml:1", "slots", "single value"}},
		"no value":             {file: "slots:", want: []string{"slots", "no value"}},
		"given twice":          {file: "slots: 1\nslots: 2", want: []string{"c.yaml:2:1", "slots", "given twice"}},
		"a list at the top":    {file: "- a", want: []string{"c.yaml:1", "key: value"}},
		"two documents":        {file: "slots: 1\n---\nslots: 2", want: []string{"c.yaml:2", "second document"}},
		"group given twice":    {file: "nats: {}\nnats: {url: x}", want: []string{"c.yaml:2:1", "nats", "given twice"}},
		"broken yaml":          {file: "slots: [", want: []string{"c.yaml:2:1: not YAML"}},
		"indented by a tab":    {file: "nats:\n\turl: x", want: []string{"c.yaml:2:1", "not with tabs"}},
		"anchor":               {file: "slots: &a 3", want: []string{"c.yaml:1:8", "anchors"}},
		"all mistakes":         {file: "slost: 1\nslots: []\nques: a", want: []string{"c.yaml:1:1", "c.yaml:3:1"}},
		"bad variable":         {env: "SLIPWAY_SLOTS=many", want: []string{"SLIPWAY_SLOTS", "integer"}},
		"bad duration":         {env: "SLIPWAY_SOFT_STOP=5", want: []string{"SLIPWAY_SOFT_STOP"}},
		"bad value in a group": {file: "log: {limit: big}", want: []string{"c.yaml:1", "log.limit", "big"}},
		"empty list":           {file: "queues: []", want: []string{"queues"}},
		"a secret under flag":  {file: "s3: {secret_key: {a: b}}", want: []string{"s3.secret_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := setup(t)
			err := s.Resolve([]string{tc.env}, "c.yaml", strings.NewReader(tc.file))
			if err == nil {
				t.Fatal("Resolve accepted it")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message %q lacks %q", err, part)
				}
			}
		})
	}
}

func TestSecretHasNoFlagAndIsMasked(t *testing.T) {
	s, _ := setup(t)
	if err := s.Resolve([]string{"SLIPWAY_S3_SECRET_KEY=hunter2"}, "", nil); err != nil {
		t.Fatal(err)
	}
	st := s.Lookup("s3.secret_key")
	if st.Flag() != "" || s.public.Lookup("s3-secret-key") != nil {
		t.Error("a secret has a flag")
	}
	if got := st.Display(); strings.Contains(got, "hunter2") || got == "" {
		t.Errorf("Display = %q", got)
	}
}

func TestMaskURLs(t *testing.T) {
	for in, want := range map[string]string{
		"nats://127.0.0.1:4222":             "nats://127.0.0.1:4222",
		"nats://me:pw@h:1":                  "nats://me:xxxxx@h:1",
		"nats://token@h:1,nats://u:p@i:2":   "nats://xxxxx@h:1,nats://u:xxxxx@i:2",
		"nats://u:p%zz@h":                   "********",
		"plain text":                        "plain text",
		"nats://a:1, nats://user:geheim@b:": "nats://a:1,nats://user:xxxxx@b:",
	} {
		if got := MaskURLs(in); got != want {
			t.Errorf("MaskURLs(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnknownEnv(t *testing.T) {
	s, _ := setup(t)
	got := s.UnknownEnv([]string{"SLIPWAY_SLOT=1", "SLIPWAY_SLOTS=1", "HOME=/", "AWS_SECRET_ACCESS_KEY=x", "SLIPWAY_ZZZZZZ=1"})
	if want := []UnknownVariable{{"SLIPWAY_SLOT", "SLIPWAY_SLOTS"}, {"SLIPWAY_ZZZZZZ", ""}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file)
	f.Add("a: &x [*x]")
	f.Add("? {a: b}\n: c")
	f.Add("<<: {slots: 1}")
	f.Fuzz(func(t *testing.T, in string) {
		s, _ := setup(t)
		_ = s.Resolve(nil, "c.yaml", strings.NewReader(in)) // must not panic
	})
}

// TestResolve_Checks: a refused value is named by what gave it, and all of them are told at once.
func TestResolve_Checks(t *testing.T) {
	check := func(s *Set, v *values) {
		s.Lookup("slots").Check(func() error {
			if v.slots < 0 {
				return errors.New("want 0 or more")
			}
			return nil
		})
		s.Lookup("nats.url").Check(func() error {
			if v.url == "bad" {
				return errors.New("want a URL")
			}
			return nil
		})
		s.Together(func() error {
			if v.path && v.slots == 1 {
				return errors.New("too few slots")
			}
			return nil
		}, "slots", "s3.path_style", "queues")
	}
	for name, tc := range map[string]struct {
		args []string
		env  []string
		file string
		want string
	}{
		"good":             {},
		"flag":             {args: []string{"--slots=-1"}, want: "--slots: want 0 or more"},
		"variable":         {env: []string{"SLIPWAY_SLOTS=-1"}, want: "variable SLIPWAY_SLOTS: want 0 or more"},
		"file":             {file: "nats:\n  url: bad", want: "c.yaml:2:8: nats.url: want a URL"},
		"what is not used": {file: "slots: -1", env: []string{"SLIPWAY_SLOTS=1"}},
		"all":              {args: []string{"--nats-url=bad"}, file: "slots: -1", want: "--nats-url: want a URL\nc.yaml:1:8: slots: want 0 or more"},
		"together":         {args: []string{"--slots=1"}, file: "s3: {path_style: true}", want: "--slots, c.yaml:1:18: s3.path_style: too few slots"},
		"all kinds": {
			args: []string{"--slots=1", "--nats-url=bad"}, file: "s3: {path_style: true}\nslost: 1",
			want: "c.yaml:2:1: slost: no such setting: did you mean \"slots\"?\n--nats-url: want a URL",
		},
		"all kinds, and nothing beside the rule": {
			args: []string{"--slots=1", "--nats-url=bad"}, file: "s3: {path_style: true}\nlog: {limt: 1}",
			want: "c.yaml:2:7: log.limt: no such setting: did you mean \"log.limit\"?\n--nats-url: want a URL\n--slots, c.yaml:1:18: s3.path_style: too few slots",
		},
		"a part of the rule is wrong":     {args: []string{"--slots=1"}, file: "s3: {path_style: true}\nqueues: []", want: "c.yaml:2:9: queues: an empty list"},
		"a key beside a part of the rule": {args: []string{"--slots=1"}, file: "s3: {path_style: true, secret: x}", want: "c.yaml:1:24: s3.secret: no such setting: did you mean \"s3.secret_key\"?"},
		"what may be a group's name":      {args: []string{"--slots=1"}, env: []string{"SLIPWAY_S3_PATH_STYLE=true"}, file: "zzzzzzzz: {a: b}", want: "c.yaml:1:1: zzzzzzzz: no such setting"},
		"a file that is none, and a flag": {args: []string{"--slots=-1"}, file: "slots: [", want: "c.yaml:2:1: not YAML: did not find expected node content while parsing a flow node\n--slots: want 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := setup(t, tc.args...)
			check(s, v)
			err := s.Resolve(tc.env, "c.yaml", strings.NewReader(tc.file))
			if got := fmt.Sprint(err); err == nil && tc.want != "" || err != nil && got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
