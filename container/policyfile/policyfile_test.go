package policyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"slipway/container"
	"slipway/internal/document"
	"slipway/internal/size"
)

func readPolicyPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page's example is a policy, and has every key.
func TestPolicyPage_Example(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPolicyPage(t))
	if m == nil {
		t.Fatal("docs/policy.md has no example")
	}
	if _, _, err := Parse([]byte(m[1])); err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(m[1]), &keys); err != nil {
		t.Fatal(err)
	}
	limits, ok := keys["max"].(map[string]any)
	if !ok {
		t.Fatalf("max: got %v, want a map", keys["max"])
	}
	for _, name := range keysOf(reflect.TypeFor[file]()) {
		if _, ok := keys[name]; !ok {
			t.Errorf("docs/policy.md: the example lacks %s", name)
		}
	}
	for _, name := range keysOf(reflect.TypeFor[container.Resources]()) {
		if _, ok := limits[name]; !ok {
			t.Errorf("docs/policy.md: the example lacks max.%s", name)
		}
	}
}

func keysOf(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return names
}

// The page explains each relaxation, and nothing else.
func TestPolicyPage_Relaxations(t *testing.T) {
	var got []container.Relaxation
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(readPolicyPage(t), -1) {
		got = append(got, container.Relaxation(m[1]))
	}
	if want := container.Relaxations(); !slices.Equal(got, want) {
		t.Errorf("docs/policy.md has rows for %v, want %v", got, want)
	}
}

// The page tells what a box gets that asks for nothing.
func TestPolicyPage_Defaults(t *testing.T) {
	d := container.DefaultResources()
	if d.Disk != 0 {
		t.Errorf("disk: got %d, the page says that there is no bound", d.Disk)
	}
	names := keysOf(reflect.TypeFor[container.Resources]())
	want := fmt.Sprintf("| %s |\n|---|---|---|---|---|---|---|\n| %v | %s | %d | the engine's | %s | %s | %d |\n", strings.Join(names, " | "),
		d.CPUs, size.Format(d.Memory), d.Pids, size.Format(d.Tmp), size.Format(d.Shm), d.Files)
	if !strings.Contains(readPolicyPage(t), want) {
		t.Errorf("docs/policy.md lacks\n%s", want)
	}
}

func TestParsePolicy(t *testing.T) {
	p, defaults, err := Parse([]byte(`
allow: [network_open]
images: [docker.io/library/, docker.io/acme, docker.io/library/golang, "ghcr.io/acme/app:1"]
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
	if p, _, err := Parse(nil); err != nil || len(p.Allow) != 0 {
		t.Errorf("an empty file: %+v, %v, want the closed policy", p, err)
	}
}

func TestParsePolicy_Refuses(t *testing.T) {
	for in, want := range map[string]string{
		"allow: [everything]":                           `line 1, column 9: allow[0]: "everything" is none of`,
		"allow: [root_steps]\nalways: [rootstep]":       `line 2, column 10: always[0]: "rootstep" is none of network_open, root_steps, rootfs_writable, seccomp_default: did you mean "root_steps"?`,
		"alow: [network_open]":                          `line 1, column 1: alow: unknown field: did you mean "allow"?`,
		"max: {memory: lots}":                           `line 1, column 15: max.memory: not a size such as "512MiB"`,
		"max: {memory: -1}":                             "max.memory: not a size",
		"max: {memory: 5}":                              "line 1, column 15: max.memory: 5B is below the least possible, 16MiB: did you mean 5MiB?",
		"max: {cpus: -1}":                               "line 1, column 13: max.cpus: -1 is below",
		"max: {cpus: many}":                             "line 1, column 13: max.cpus: want a number",
		"images:\n  - busybox":                          `line 2, column 5: images[0]: "busybox" must begin with a registry`,
		"defaults: {tmp: 5}":                            "line 1, column 17: defaults.tmp: 5B is below the least possible, 1MiB",
		"max: {shm: 63KiB}":                             "max.shm: 63KiB is below the least possible, 64KiB",
		"max: {memory: 1000000}":                        "max.memory: must be 16MiB to 1024TiB, not 1000000B",
		"images: [ghcr.io/Acme/]":                       `images[0]: no image is below "ghcr.io/Acme/", since their names are in lower case: "ghcr.io/acme/"`,
		"images: [index.docker.io/library/]":            `images[0]: no image is below "index.docker.io/library/": an engine calls such a one "docker.io/library/x:latest"`,
		"images: [ghcr.io/acme//]":                      `images[0]: no image can be below "ghcr.io/acme//"`,
		"max: {memory: 1GiB}\ndefaults: {memory: 2GiB}": "defaults.memory: beyond max.memory: 2GiB asked for, 1GiB allowed",
		"max: {cpus: 1}\ndefaults: {cpus: 2}":           "line 2, column 18: defaults.cpus: beyond max.cpus: 2 asked for, 1 allowed",
		"allow: []\n---\nallow: []\n":                   "line 2, column 1: a second document starts here",
		"- allow":                                       "line 1, column 1: want a map, not a list",
		"allow: []\nmax: {}\nallow: [root_steps]\n":     "line 3, column 1: allow: given twice, first on line 1",
		"allow:\n\t- root_steps":                        "line 2, column 1: not YAML: indent with spaces, not with tabs",
	} {
		if _, _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", in, err, want)
		}
	}
}

// TestParsePolicy_Images: what an image can be below is accepted.
func TestParsePolicy_Images(t *testing.T) {
	for _, prefix := range []string{"docker.io/", "docker.io/library/", "ghcr.io/acme", "GHCR.io/acme/", "localhost:5000/", "ghcr.io/acme/tool:V1", "ghcr.io/a/b@sha256:01"} {
		if _, _, err := Parse([]byte("images: ['" + prefix + "']")); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

// TestParsePolicy_All: what does not hang on another mistake is told with it.
func TestParsePolicy_All(t *testing.T) {
	_, _, err := Parse([]byte(`allow: [network_opn, root_steps, network]
always: [rootfs]
images: [busybox, ghcr.io/Acme/, "ghcr.io/acme/tool:V1"]
max: {cpus: -1, memory: 8, disk: 1GiB, tmp: 64MiB}
defaults: {cpus: 2, pids: 1, disk: 2GiB, tmp: 1GiB}
alow: []
`))
	var many document.Errors
	if !errors.As(err, &many) {
		t.Fatalf("got %v, want all mistakes", err)
	}
	var got []string
	for _, one := range many {
		got = append(got, one.Path)
	}
	want := []string{
		"allow[0]", "allow[2]", "always[0]", "images[0]", "images[1]", "max.cpus", "max.memory", "defaults.pids", "defaults.tmp", "alow",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v\n%v", got, want, err)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("allow: [network_open]\nmax: {memory: 4GiB}\n"))
	f.Add([]byte("max: &a {cpus: *a}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, _, err := Parse(in)
		if err == nil && p.Validate() != nil {
			t.Errorf("accepted an invalid policy: %+v", p)
		}
	})
}

// TestLoad: a mistake stands behind the name of the file and its place, as editors find it.
func TestLoad(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	for text, want := range map[string]string{
		"":                                   "",
		"max: {memory: 4GiB}":                "",
		"alow: []\nmax: {cpus: -1}":          name + ":1:1: alow: unknown field: did you mean \"allow\"?\n" + name + ":2:13: max.cpus: -1 is below 0.01, or no sensible number",
		"#" + strings.Repeat("x", 1<<20):     name + ": 1048577 bytes, more than the 1048576 (1 MiB) allowed",
		"allow: ['\xff']":                    name + ":1:10: byte 0xff is not UTF-8: save the text as UTF-8",
		`{"max": ` + strings.Repeat("[", 40): name + ":1:40: nested deeper than 32 levels",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, _, err := Load(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
	if _, _, err := Load(name + ".not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}
