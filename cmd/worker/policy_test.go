package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"slipway/container"
	"slipway/job"
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
	if _, _, err := parsePolicy([]byte(m[1])); err != nil {
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
	for _, name := range keysOf(reflect.TypeFor[policyFile]()) {
		if _, ok := keys[name]; !ok {
			t.Errorf("docs/policy.md: the example lacks %s", name)
		}
	}
	for _, name := range keysOf(reflect.TypeFor[resources]()) {
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
	names := keysOf(reflect.TypeFor[resources]())
	want := fmt.Sprintf("| %s |\n|---|---|---|---|---|---|---|\n| %v | %s | %d | the engine's | %s | %s | %d |\n", strings.Join(names, " | "),
		d.CPUs, job.Bytes(d.Memory), d.Pids, job.Bytes(d.Tmp), job.Bytes(d.Shm), d.Files)
	if !strings.Contains(readPolicyPage(t), want) {
		t.Errorf("docs/policy.md lacks\n%s", want)
	}
}
