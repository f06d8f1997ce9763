package job

import (
	"reflect"

	"slipway/internal/document"
)

// kind is what the reader of jobs adds to that of all documents.
var kind = document.Kind{
	Name:     "job",
	MaxBytes: MaxSpecBytes,
	MaxDepth: maxNesting,
	TooLarge: "put large files into the workers' bucket, below inputs/, with any S3 client, and name them in inputs by key and sha256",
	NotUTF8:  "save the text as UTF-8, or give binary content as content_base64",
	Values: map[reflect.Type]string{
		reflect.TypeFor[Duration](): `a duration such as "90s"`,
		reflect.TypeFor[Bytes]():    `a size such as "512MiB"`,
		reflect.TypeFor[Mode]():     `a permission such as "0644"`,
	},
	Unsupported: unsupported,
	Synonyms:    synonyms,
	Hints:       hints,
	Elsewhere: map[string]document.Elsewhere{
		"Job":  {Type: reflect.TypeFor[Step](), Advice: "it belongs to a step, below steps"},
		"Step": {Type: reflect.TypeFor[Job](), Advice: "it belongs to the job, not to a step"},
	},
}

var unsupported = map[string][]string{
	"Job":       {"session", "template", "secrets", "expires_at", "agent", "collect", "keep_on_failure"},
	"Workspace": {"layout", "include", "exclude", "on_conflict"},
	"Step":      {"background", "ready", "leftovers", "artifacts"},
}

var synonyms = map[string]map[string]string{
	"Job": {
		"environment": "env", "envs": "env", "variables": "env", "working_dir": "workdir", "working_directory": "workdir",
		"cwd": "workdir", "dir": "workdir", "container": "image", "timeout_minutes": "timeout", "deadline": "timeout",
		"max_duration": "timeout", "retries": "retry", "start_at": "not_before", "tags": "labels", "metadata": "labels",
		"files": "inputs", "tasks": "steps", "commands": "steps", "script": "steps", "image_pull_policy": "pull",
		"pull_policy": "pull", "limits": "resources", "network_mode": "network", "relaxed": "relax", "relaxations": "relax", "arch": "platform",
		"cpu": "resources.cpus", "cpus": "resources.cpus", "memory": "resources.memory", "mem": "resources.memory", "ram": "resources.memory",
		"disk": "resources.disk", "storage": "resources.disk", "pids": "resources.pids", "shm": "resources.shm", "shm_size": "resources.shm", "tmp": "resources.tmp",
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

var hints = map[string]document.Hint{
	"Job":            {Advice: ": a job is a map of fields such as image and steps"},
	"Job.env":        {Example: `{NAME: "value"}`},
	"Job.image":      {Example: `"golang:1.26"`},
	"Job.inputs":     {Example: `[{path: "a.txt", content: "hello"}]`},
	"Job.labels":     {Example: `{team: "build"}`},
	"Job.relax":      {Example: `["rootfs_writable"]`},
	"Job.resources":  {Example: `{cpus: 2, memory: "1GiB"}`},
	"Job.retry":      {Example: `{attempts: 3}`},
	"Job.steps":      {Example: `[{run: "make test"}]`},
	"Job.workspace":  {Example: `{prefix: "team/project"}`},
	"Input":          {Example: `{path: "a.txt", content: "hello"}`},
	"Input.content":  {Advice: "; for bytes use content_base64"},
	"Resources.cpus": {Example: `1.5`},
	"Step":           {Example: `{run: "make test"}`},
	"Step.command":   {Example: `["go", "test"]`, Advice: "; for a shell script use run"},
	"Step.env":       {Example: `{NAME: "value"}`},
	"Step.retry":     {Example: `{attempts: 3}`},
	"Step.run":       {Advice: "; for a program and its arguments use command"},
	"Step.shell":     {Example: `["/bin/bash", "-e", "-c"]`},
	"Step.write":     {Example: `{path: "a.txt", content: "hello"}`},
}
