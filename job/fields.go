package job

import (
	"reflect"
	"strings"
	"sync"

	"slipway/internal/suggest"
)

// field is one field of a struct as the text of a job sees it.
type field struct {
	name   string
	index  int
	filled bool // the empty value is refused
}

var fieldCache sync.Map // reflect.Type → []field

// fieldsOf lists the fields of a struct type in their order.
func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]field)
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		tag := t.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		fields[i] = field{name: name, index: i, filled: tag.Get("spec") == "filled"}
	}
	fieldCache.Store(t, fields)
	return fields
}

// findField returns the field called name, or nil.
func findField(t reflect.Type, name string) *field {
	fields := fieldsOf(t)
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// unsupported lists, per type, the fields that the format has and that this
// version does not implement. They are refused by name: a job that asks for one
// must not run without it.
var unsupported = map[string][]string{
	"Job":       {"session", "template", "secrets", "expires_at", "agent", "collect", "keep_on_failure"},
	"Workspace": {"layout", "include", "exclude", "on_conflict"},
	"Step":      {"background", "ready", "leftovers", "artifacts"},
}

// synonyms lists, per type, what fields are called elsewhere.
var synonyms = map[string]map[string]string{
	"Job": {
		"environment": "env", "envs": "env", "variables": "env", "working_dir": "workdir", "working_directory": "workdir",
		"cwd": "workdir", "dir": "workdir", "container": "image", "timeout_minutes": "timeout", "deadline": "timeout",
		"max_duration": "timeout", "retries": "retry", "start_at": "not_before", "tags": "labels", "metadata": "labels",
		"files": "inputs", "tasks": "steps", "commands": "steps", "script": "steps", "image_pull_policy": "pull",
		"pull_policy": "pull", "limits": "resources", "network_mode": "network", "arch": "platform",
	},
	"Step": {
		"script": "run", "bash": "run", "sh": "run", "cmd": "command", "argv": "command", "exec": "command", "args": "command",
		"environment": "env", "envs": "env", "cwd": "dir", "workdir": "dir", "working_dir": "dir", "working_directory": "dir",
		"timeout_minutes": "timeout", "when": "if", "retries": "retry", "input": "stdin", "ignore_failure": "continue_on_error",
		"allow_failure": "continue_on_error", "remove": "delete", "rm": "delete", "ls": "list", "cat": "read", "id": "name",
	},
	"Resources": {"cpu": "cpus", "mem": "memory", "ram": "memory", "processes": "pids", "storage": "disk", "shm_size": "shm"},
	"Retry":     {"max": "attempts", "count": "attempts", "max_attempts": "attempts", "tries": "attempts", "delay": "backoff"},
	"Workspace": {"name": "prefix", "id": "prefix", "key": "prefix", "path": "prefix"},
	"Input":     {"name": "path", "file": "path", "dest": "path", "data": "content", "text": "content", "digest": "sha256", "checksum": "sha256"},
	"WriteFile": {"name": "path", "file": "path", "dest": "path", "data": "content", "text": "content"},
}

// hint helps with a value that has the wrong form.
type hint struct{ example, advice string }

// hints per field, and per type for the elements of lists.
var hints = map[string]hint{
	"Job":            {advice: ": a job is a map of fields such as image and steps"},
	"Job.env":        {example: `{NAME: "value"}`},
	"Job.image":      {example: `"golang:1.26"`},
	"Job.inputs":     {example: `[{path: "a.txt", content: "hello"}]`},
	"Job.labels":     {example: `{team: "build"}`},
	"Job.resources":  {example: `{cpus: 2, memory: "1GiB"}`},
	"Job.retry":      {example: `{attempts: 3}`},
	"Job.steps":      {example: `[{run: "make test"}]`},
	"Job.workspace":  {example: `{prefix: "team/project"}`},
	"Input":          {example: `{path: "a.txt", content: "hello"}`},
	"Input.content":  {advice: "; for bytes use content_base64"},
	"Resources.cpus": {example: `1.5`},
	"Step":           {example: `{run: "make test"}`},
	"Step.command":   {example: `["go", "test"]`, advice: "; for a shell script use run"},
	"Step.env":       {example: `{NAME: "value"}`},
	"Step.retry":     {example: `{attempts: 3}`},
	"Step.run":       {advice: "; for a program and its arguments use command"},
	"Step.shell":     {example: `["/bin/bash", "-e", "-c"]`},
	"Step.write":     {example: `{path: "a.txt", content: "hello"}`},
}

// unknownField says why key is no field of t, and what was probably meant.
func unknownField(t reflect.Type, key string) string {
	for _, name := range unsupported[t.Name()] {
		if name == key {
			return "not supported by this version"
		}
	}
	const unknown = "unknown field"
	folded := suggest.Fold(key)
	if name, ok := synonyms[t.Name()][folded]; ok {
		return unknown + suggest.DidYouMean(name)
	}
	var names []string
	for _, f := range fieldsOf(t) {
		names = append(names, f.name)
	}
	if name := suggest.Nearest(folded, names); name != "" {
		return unknown + suggest.DidYouMean(name)
	}
	switch jobType, stepType := reflect.TypeFor[Job](), reflect.TypeFor[Step](); {
	case t == jobType && findField(stepType, folded) != nil:
		return unknown + ": it belongs to a step, below steps"
	case t == stepType && findField(jobType, folded) != nil:
		return unknown + ": it belongs to the job, not to a step"
	case t != jobType && t != stepType:
		return unknown + "; there are " + strings.Join(names, ", ")
	}
	return unknown
}
