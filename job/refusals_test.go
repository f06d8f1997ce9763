package job

import (
	"fmt"
	"strings"
)

// withField is a small job with more fields; they may repeat image or steps.
func withField(fields string) string {
	return `{"image":"alpine","steps":[{"run":"true"}],` + fields + `}`
}

// withStep is a small job with one step.
func withStep(fields string) string { return `{"image":"alpine","steps":[{` + fields + `}]}` }

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// list writes n values made by a format that takes a number.
func list(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

var refusals = []struct {
	name string
	text string
	want string // the message from the path on
	// schema: the JSON Schema refuses it, too
	schema bool
}{
	// Text.
	{"empty", "", "the job is empty", true},
	{"blank", " \n ", "the job is empty", true},
	{"trailing", `{"image":"a","steps":[{"run":"x"}]} {}`, "data after the end of the job", true},
	{"trailing comma", `{"image":"a",}`, "no comma is allowed before '}'", true},
	{"no value", `{"image":}`, "'}' where a value", true},
	{"cut off", `{"image":"a`, "the text ends within a string", true},
	{"cut off in escape", `{"image":"\`, "the text ends within a string", true},
	{"cut off after key", `{"image"`, `the text ends where ':' after the key "image" is wanted`, true},
	{"single quotes", `{'image':'a'}`, `'\'' where a key in double quotes is wanted`, true},
	{"bad escape", `{"image":"\x"}`, "not an escape that JSON knows", true},
	{"lone surrogate", `{"image":"\ud800"}`, "not an escape that JSON knows", true},
	{"swapped surrogates", `{"image":"\udc00\ud800"}`, "not an escape that JSON knows", true},
	{"control character", "{\"image\":\"a\nb\"}", "the control character 0x0a must be escaped", true},
	{"leading zero", `{"version":01}`, `'1' where ',' or '}' is wanted`, true},
	{"bare minus", `{"version":-}`, "'}' where a digit is wanted", true},
	{"half a fraction", `{"version":1.}`, "'}' where a digit is wanted", true},
	{"invalid UTF-8", "{\"image\":\"\xff\"}", "byte 0xff is not UTF-8", true},
	{"too deep", repeat("[", maxNesting+1), "nested deeper than 32 levels", true},
	{"too large", `{"image":"` + repeat("a", MaxSpecBytes) + `"}`, "more than the 1048576 (1 MiB) allowed", true},
	// Form.
	{"list", `[]`, "want a map, not a list: a job is a map", true},
	{"null job", `null`, "no value is given: want a map", true},
	{"duplicate", withField(`"image":"b"`), "image: given twice, first on line 1", false},
	{"duplicate variable", withField(`"env":{"A":"1","A":"2"}`), "env.A: given twice", false},
	{"unknown", withField(`"zzz":1`), "zzz: unknown field", true},
	{"misspelled", withField(`"timout":"1m"`), `timout: unknown field: did you mean "timeout"?`, true},
	{"other spelling", withStep(`"run":"x","continueOnError":true`), `steps[0].continueOnError: unknown field: did you mean "continue_on_error"?`, true},
	{"wrong case", withField(`"Name":"x"`), `Name: unknown field: did you mean "name"?`, true},
	{"synonym", withStep(`"script":"x"`), `steps[0].script: unknown field: did you mean "run"?`, true},
	{"step's field", withField(`"stdin":"x"`), "stdin: unknown field: it belongs to a step, below steps", true},
	{"job's field", withStep(`"run":"x","image":"x"`), "steps[0].image: unknown field: it belongs to the job, not to a step", true},
	{"unknown in small struct", withField(`"retry":{"zzzzzzz":1}`), "retry.zzzzzzz: unknown field; there are attempts, backoff", true},
	{"null", withField(`"timeout":null`), `timeout: no value is given: want a duration such as "90s", or leave it out`, true},
	{"null pointer", withField(`"workspace":null`), "workspace: no value is given", true},
	{"number for string", withField(`"env":{"PORT":8080}`), "env.PORT: want a string, not a number: put quotes around it", false}, // right in YAML
	{"string for list", withStep(`"command":"go test"`), `steps[0].command: want a list of strings such as ["go", "test"], not a string; for a shell script use run`, true},
	{"list for string", withStep(`"run":["x"]`), "steps[0].run: want a string, not a list; for a program and its arguments use command", true},
	{"string for step", `{"image":"a","steps":["x"]}`, `steps[0]: want a map such as {run: "make test"}, not a string`, true},
	{"string for boolean", withStep(`"run":"x","continue_on_error":"true"`), "steps[0].continue_on_error: want true or false without quotes", true},
	{"string for number", withField(`"retry":{"attempts":"3"}`), "retry.attempts: want a whole number, not a string", true},
	{"fraction", withField(`"retry":{"attempts":1.5}`), `retry.attempts: want a whole number, not "1.5"`, true},
	{"huge number", withField(`"resources":{"cpus":1e999}`), "resources.cpus: want a number such as 1.5", true},
	{"bad base64", withStep(`"write":{"path":"a","content_base64":"a"}`), "steps[0].write.content_base64: not standard base64", true},
	// Versions and what does not work yet.
	{"version", `{"version":"2","agent":{}}`, `version: "2" is not supported: this slipway reads version "1"`, true},
	{"session", withField(`"session":"x"`), "session: not supported by this version", true},
	{"template", withField(`"template":"x"`), "template: not supported by this version", true},
	{"secrets", withField(`"secrets":["x"]`), "secrets: not supported by this version", true},
	{"expires_at", withField(`"expires_at":"x"`), "expires_at: not supported by this version", true},
	{"agent", withField(`"agent":{}`), "agent: not supported by this version", true},
	{"collect", withField(`"collect":{}`), "collect: not supported by this version", true},
	{"keep_on_failure", withField(`"keep_on_failure":true`), "keep_on_failure: not supported by this version", true},
	{"egress", withField(`"network":"egress"`), `network: "egress" is not supported by this version`, true},
	{"layout", withField(`"workspace":{"prefix":"a","layout":"mirror"}`), "workspace.layout: not supported by this version", true},
	{"include", withField(`"workspace":{"prefix":"a","include":[]}`), "workspace.include: not supported by this version", true},
	{"exclude", withField(`"workspace":{"prefix":"a","exclude":[]}`), "workspace.exclude: not supported by this version", true},
	{"on_conflict", withField(`"workspace":{"prefix":"a","on_conflict":"x"}`), "workspace.on_conflict: not supported by this version", true},
	{"background", withStep(`"run":"x","background":true`), "steps[0].background: not supported by this version", true},
	{"ready", withStep(`"run":"x","ready":{}`), "steps[0].ready: not supported by this version", true},
	{"leftovers", withStep(`"run":"x","leftovers":"keep"`), "steps[0].leftovers: not supported by this version", true},
	{"artifacts", withStep(`"run":"x","artifacts":[]`), "steps[0].artifacts: not supported by this version", true},
	// Identity.
	{"no image", `{"steps":[{"run":"x"}]}`, "image: required", true},
	{"empty image", `{"image":"","steps":[{"run":"x"}]}`, "image: required", true},
	{"no steps", `{"image":"a","steps":[]}`, "steps: required", true},
	{"lower-case id", withField(`"id":"01jdqk5y8zrt6h2v9wxn3m4p7q"`), "id: not a ULID", true},
	{"long name", withField(`"name":"` + repeat("x", 129) + `"`), "name: longer than 128 bytes", true},
	{"long name in bytes", withField(`"name":"` + repeat("ü", 65) + `"`), "name: longer than 128 bytes", false},
	{"escape in name", withField(`"name":"\u001b[31m"`), `name: the character '\x1b' is not allowed in a name`, false},
	{"turned name", withField(`"name":"a\u202eb"`), `name: the character '\u202e' is not allowed in a name`, false},
	{"queue", withField(`"queue":"a.b"`), `queue: not a queue's name such as "default"`, true},
	{"priority", withField(`"priority":"hihg"`), `priority: "hihg" is none of high, normal, low: did you mean "high"?`, true},
	{"label name", withField(`"labels":{"a b":"x"}`), `labels["a b"]: a label's name has`, true},
	{"label value", withField(`"labels":{"a":"` + repeat("x", 257) + `"}`), "labels.a: longer than 256 bytes", false},
	{"label line", withField(`"labels":{"a":"x\ny"}`), "labels.a: must not contain control characters", false},
	{"many labels", withField(`"labels":{` + list(65, `"l%d":""`) + `}`), "labels: 65 labels, more than 64", true},
	// Box.
	{"image with space", `{"image":"a b","steps":[{"run":"x"}]}`, `image: not an image's name such as "golang:1.26"`, true},
	{"image in capitals", `{"image":"Alpine","steps":[{"run":"x"}]}`, `image: a repository's name is written in lower case: "alpine"`, true},
	{"image with scheme", `{"image":"https://a/b","steps":[{"run":"x"}]}`, "image: leave out the scheme", true},
	{"hostile image", `{"image":"\u001b]0;x\u0007","steps":[{"run":"x"}]}`, `"\x1b]0;x\a"`, true},
	{"platform", withField(`"platform":"windows/amd64"`), "platform: not a Linux platform", true},
	{"pull", withField(`"pull":"if-not-present"`), "pull: \"if-not-present\" is none of always, missing, never", true},
	{"user name", withField(`"user":"root"`), `user: not "uid" or "uid:gid" in numbers`, true},
	{"user too high", withField(`"user":"4294967295"`), "user: 4294967295 is more than the highest id", false},
	{"relative workdir", withField(`"workdir":"w"`), "workdir: must be absolute", true},
	{"unclean workdir", withField(`"workdir":"/a/../proc/1"`), `workdir: write it as "/proc/1"`, false},
	{"workdir in proc", withField(`"workdir":"/proc/self/fd/7"`), "workdir: must not lie in /proc", false},
	{"workdir hides", withField(`"workdir":"/usr/lib"`), "workdir: must not lie in /usr", false},
	{"workdir root", withField(`"workdir":"/"`), "workdir: \"/\" would hide what the image holds", true},
	{"workdir colon", withField(`"workdir":"/a:b"`), "workdir: must not be longer", true},
	{"env name", withField(`"env":{"A=B":"x"}`), `env["A=B"]: not a variable's name`, true},
	{"env zero byte", withField(`"env":{"A":"\u0000"}`), "env.A: must not contain a zero byte", false},
	{"env value", withField(`"env":{"A":"` + repeat("x", MaxEnvValue+1) + `"}`), "env.A: 32769 bytes, more than 32768", false},
	{"env count", withField(`"env":{` + list(101, `"V%d":""`) + `}`), "env: 101 variables, more than 100", true},
	{"env size", withField(`"env":{` + list(9, `"V%d":"`+repeat("x", MaxEnvValue)+`"`) + `}`), "env: 294930 bytes of names and values", false},
	{"network", withField(`"network":"host"`), `network: "host" is none of none, open`, true},
	{"cpus", withField(`"resources":{"cpus":0.001}`), "resources.cpus: must be 0.01 to 4096, not 0.001", true},
	{"negative cpus", withField(`"resources":{"cpus":-1}`), "resources.cpus: must be", true},
	{"zero memory", withField(`"resources":{"memory":"0"}`), "resources.memory: zero is no value here", true},
	{"unitless memory", withField(`"resources":{"memory":"512"}`), "resources.memory: 512B is below the least possible, 16MiB: did you mean 512MiB?", false},
	{"negative memory", withField(`"resources":{"memory":"-1g"}`), `resources.memory: not a size such as "512MiB" or "2g": "-1g"`, true},
	{"overflowing memory", withField(`"resources":{"memory":"99999999999t"}`), "resources.memory: not a size", false},
	{"pids", withField(`"resources":{"pids":1}`), "resources.pids: must be 32 to 4194304, not 1", true},
	{"tmp", withField(`"resources":{"memory":"1g","tmp":"2g"}`), "resources.tmp: 2GiB is more than resources.memory (1GiB)", false},
	// Times.
	{"no unit", withField(`"timeout":"90"`), `timeout: a duration needs a unit: "90s" for seconds, "90m" for minutes`, true},
	{"no duration", withField(`"timeout":"soon"`), `timeout: not a duration such as "90s" or "1h30m": "soon"`, true},
	{"zero timeout", withField(`"timeout":"0s"`), "timeout: zero is no value here", false},
	{"short timeout", withField(`"timeout":"10ms"`), "timeout: must be 1s to 24h, not 10ms", false},
	{"long timeout", withStep(`"run":"x","timeout":"25h"`), "steps[0].timeout: must be 1s to 24h, not 25h0m0s", false},
	{"negative timeout", withField(`"timeout":"-5s"`), "timeout: must be 1s to 24h", true},
	{"grace", withStep(`"run":"x","grace":"11m"`), "steps[0].grace: must be 0s to 10m, not 11m0s", false},
	{"not_before", withField(`"not_before":"tomorrow"`), `not_before: not a time such as "2026-01-31T15:04:05Z": "tomorrow"`, true},
	{"not_before too early", withField(`"not_before":"1970-01-01T00:00:01Z"`), "not_before: 1970-01-01T00:00:01Z is no sensible start", false},
	{"not_before too late", withField(`"not_before":"9999-01-01T00:00:00Z"`), "not_before: 9999-01-01T00:00:00Z is more than a year away", false},
	{"attempts", withField(`"retry":{"attempts":21}`), "retry.attempts: must be 1 to 20, not 21", true},
	{"backoff", withStep(`"run":"x","retry":{"backoff":"6m"}`), "steps[0].retry.backoff: must be 1ms to 5m, not 6m0s", false},
	// Files.
	{"prefix missing", withField(`"workspace":{}`), "workspace.prefix: required", true},
	{"push without a prefix", withField(`"workspace":{"from_image":true,"push":"always"}`), "workspace: pull and push need a prefix", true},
	{"from_image in memory", withField(`"workspace":{"from_image":true},"resources":{"disk":"1GiB"}`), "workspace.from_image: not with resources.disk", false},
	{"prefix", withField(`"workspace":{"prefix":"a/../b"}`), "workspace.prefix: not one to four parts", true},
	{"push", withField(`"workspace":{"prefix":"a","push":"success"}`), `workspace.push: "success" is none of always, on_success, never: did you mean "on_success"?`, true},
	{"input without source", withField(`"inputs":[{"path":"a"}]`), "inputs[0]: needs one of content, content_base64 or key", true},
	{"input with two", withField(`"inputs":[{"path":"a","content":"","key":"k","sha256":"` + repeat("0", 64) + `"}]`), "inputs[0].key: can't be used beside content", true},
	{"key without digest", withField(`"inputs":[{"path":"a","key":"k"}]`), "inputs[0].sha256: required with key", true},
	{"digest without key", withField(`"inputs":[{"path":"a","content":"","sha256":"` + repeat("0", 64) + `"}]`), "inputs[0].sha256: only with key", true},
	{"digest", withField(`"inputs":[{"path":"a","key":"k","sha256":"ABC"}]`), "inputs[0].sha256: not a SHA-256 digest", true},
	{"key climbs", withField(`"inputs":[{"path":"a","key":"../k","sha256":"` + repeat("0", 64) + `"}]`), "inputs[0].key: must stay in the workspace", true},
	{"input twice", withField(`"inputs":[{"path":"a","content":""},{"path":"a","content":""}]`), "inputs[1].path: the same file as inputs[0]", false},
	{"input in a file", withField(`"inputs":[{"path":"a/b","content":""},{"path":"a","content":""}]`), `inputs[0].path: "a" is a file already: see inputs[1]`, false},
	{"many inputs", withField(`"inputs":[` + list(1001, `{"path":"f%d","content":""}`) + `]`), "inputs: 1001 files, more than 1000", true},
	{"mode", withField(`"inputs":[{"path":"a","content":"","mode":"1777"}]`), `inputs[0].mode: not a permission such as "0644": "1777"`, true},
	{"absolute path", withStep(`"write":{"path":"/etc/passwd","content":""}`), "steps[0].write.path: must be relative to the workspace", true},
	{"no path", withStep(`"write":{"content":""}`), "steps[0].write.path: required", true},
	{"climbing path", withStep(`"read":"a/../../b"`), "steps[0].read: must stay in the workspace", false},
	{"unclean path", withStep(`"read":"./a"`), `steps[0].read: write it as "a"`, true},
	{"zero byte in path", withStep(`"read":"a\u0000b"`), `steps[0].read: the character '\x00' is not allowed in a path`, false},
	{"state file", withStep(`"delete":".sandbox-state"`), "steps[0].delete: \".sandbox-state\" is slipway's own", true},
	{"state file of a kind", withStep(`"list":".sandbox-state.tmp/x"`), "is slipway's own", true},
	{"delete all", withStep(`"delete":"."`), "steps[0].delete: must name a file or a folder in the workspace", true},
	{"long part", withStep(`"read":"` + repeat("x", 256) + `"`), "steps[0].read: has a part of more than 255 bytes", false},
	// Steps.
	{"many steps", `{"image":"a","steps":[` + list(201, `{"run":"%d"}`) + `]}`, "steps: 201 steps, more than 200", true},
	{"idle step", withStep(`"name":"x"`), "steps[0]: needs one of run, command, write, read, delete or list", true},
	{"two actions", withStep(`"run":"x","read":"a"`), "steps[0].read: can't be used beside run: give exactly one of", true},
	{"empty run", withStep(`"run":""`), "steps[0].run: must not be empty", true},
	{"blank run", withStep(`"run":" \n"`), "steps[0].run: must not be blank", false},
	{"zero byte in run", withStep(`"run":"a\u0000"`), "steps[0].run: must not contain a zero byte", false},
	{"large run", withStep(`"run":"` + repeat("x", MaxCommandBytes+1) + `"`), "steps[0].run: 65537 bytes, more than 65536: put the script into an input file", true},
	{"empty command", withStep(`"command":[]`), "steps[0].command: must not be empty", true},
	{"empty program", withStep(`"command":["","a"]`), "steps[0].command[0]: the program must not be empty", false},
	{"large command", withStep(`"command":["a",` + list(2, `"%d`+repeat("x", MaxCommandBytes/2)+`"`) + `]`), "steps[0].command: 65542 bytes, more than 65536", false},
	{"shell alone", withStep(`"command":["x"],"shell":["sh"]`), "steps[0].shell: only with run", true},
	{"env of a file step", withStep(`"read":"a","env":{"A":"1"}`), "steps[0].env: only with run or command", true},
	{"user of a file step", withStep(`"list":".","user":"0"`), "steps[0].user: only with run or command", true},
	{"dir in proc", withStep(`"run":"x","dir":"/proc/self/fd/8"`), "steps[0].dir: must not lie in /proc", true},
	{"dir climbs", withStep(`"run":"x","dir":"../x"`), "steps[0].dir: must stay in the workspace", false},
	{"condition", withStep(`"run":"x","if":"allways"`), `steps[0].if: "allways" is none of success, failure, always: did you mean "always"?`, true},
}
