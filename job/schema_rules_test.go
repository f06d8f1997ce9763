package job

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"slipway/internal/document"
)

// typeRules per named type. Zero bytes mean the default, so they are refused.
var typeRules = map[string]object{
	"Duration": {{"pattern", `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`}, {"examples", []string{"90s", "1h30m"}}},
	"Bytes":    {{"pattern", `^0*[1-9][0-9]*([bB]|[kKmMgGtT]([iI]?[bB])?)?$`}, {"examples", []string{"512MiB", "2g"}}},
	"Mode":     {{"pattern", `^0*[1-7][0-7]{0,2}$`}, {"examples", []string{"0644", "0755"}}},
	"ID":       {{"pattern", idPattern}},
}

var (
	envRules  = object{{"maxProperties", MaxEnvVars}, {"propertyNames", object{{"pattern", envNamePattern}}}}
	fileRules = object{{"minLength", 1}, {"maxLength", maxPathBytes}, {"not", object{{"pattern", `^(/|\.sandbox-state|\.\.?(/|$))`}}}}
	dirRules  = object{{"not", object{{"pattern", `^/(proc|sys|dev)(/|$)`}}}}
	nameRules = object{{"maxLength", maxNameBytes}}
	userRules = object{{"pattern", userPattern}}
)

// rules per field: the grammar and the caps of Validate, as far as a schema can say them.
var rules = map[string]object{
	"Job.version":            {{"const", Version}},
	"Job.name":               nameRules,
	"Job.queue":              {{"pattern", queuePattern}, {"default", DefaultQueue}},
	"Job.priority":           {{"default", PriorityNormal}},
	"Job.labels":             {{"maxProperties", MaxLabels}, {"propertyNames", object{{"pattern", labelPattern}}}},
	"Job.image":              {{"pattern", imagePattern}, {"maxLength", maxImageBytes}, {"examples", []string{"golang:1.26"}}},
	"Job.platform":           {{"pattern", platformPattern}, {"examples", []string{"linux/amd64", "linux/arm64"}}},
	"Job.pull":               {{"default", PullMissing}},
	"Job.user":               append(userRules, member{"default", defaultUser}),
	"Job.workdir":            {{"pattern", `^/[^:,]*[^:,/]$`}, {"default", DefaultWorkdir}},
	"Job.env":                envRules,
	"Job.network":            {{"default", NetworkNone}},
	"Job.timeout":            {{"default", short(DefaultTimeout)}},
	"Job.inputs":             {{"maxItems", MaxInputs}},
	"Job.steps":              {{"minItems", 1}, {"maxItems", MaxSteps}},
	"Resources.cpus":         {{"minimum", MinCPUs}, {"maximum", MaxCPUs}},
	"Resources.pids":         {{"minimum", MinPids}, {"maximum", MaxPids}},
	"Retry.attempts":         {{"minimum", 1}, {"maximum", MaxAttempts}, {"default", 1}},
	"Retry.backoff":          {{"default", short(DefaultBackoff)}},
	"Workspace.prefix":       {{"pattern", prefixPattern}, {"examples", []string{"team/project"}}},
	"Workspace.pull":         {{"default", WorkspacePullAlways}},
	"Workspace.push":         {{"default", WorkspacePushOnSuccess}},
	"Input.path":             fileRules,
	"Input.key":              fileRules,
	"Input.sha256":           {{"pattern", sha256Pattern}},
	"Input.mode":             {{"default", defaultMode}},
	"WriteFile.path":         fileRules,
	"WriteFile.mode":         {{"default", defaultMode}},
	"Step.name":              nameRules,
	"Step.run":               {{"maxLength", MaxCommandBytes}},
	"Step.read":              fileRules[1:],
	"Step.delete":            fileRules[1:],
	"Step.list":              {{"not", object{{"pattern", `^(/|\.sandbox-state|\.\.(/|$))`}}}},
	"Step.dir":               dirRules,
	"Step.env":               envRules,
	"Step.user":              userRules,
	"Step.shell":             {{"default", DefaultShell()}},
	"Step.grace":             {{"default", short(DefaultGrace)}},
	"Step.if":                {{"default", IfSuccess}},
	"Step.continue_on_error": {{"default", false}},
}

// structRules say what belongs together.
var structRules = map[string]object{
	"Job": {{"required", []string{"image", "steps"}}},
	"Workspace": {
		{"anyOf", []object{{{"required", []string{"prefix"}}}, {{"required", []string{"from_image"}}}}},
		{"dependentRequired", object{{"pull", []string{"prefix"}}, {"push", []string{"prefix"}}}},
	},
	"Input": {
		{"required", []string{"path"}},
		{"oneOf", requireOne("content", "content_base64", "key")},
		{"dependentRequired", object{{"key", []string{"sha256"}}, {"sha256", []string{"key"}}}},
	},
	"WriteFile": {{"required", []string{"path"}}, {"oneOf", requireOne("content", "content_base64")}},
	"Step": {
		{"oneOf", requireOne(stepKinds()...)},
		{"dependentRequired", object{{"shell", []string{"run"}}}},
		{"dependentSchemas", needsProcess("dir", "env", "user", "stdin", "grace")},
	},
}

func requireOne(names ...string) []object {
	var out []object
	for _, name := range names {
		out = append(out, object{{"required", []string{name}}})
	}
	return out
}

func needsProcess(names ...string) object {
	var out object
	for _, name := range names {
		out = append(out, member{name, object{{"anyOf", requireOne(KindRun, KindCommand)}}})
	}
	return out
}

// The rules would be silently useless if they named no field.
func TestSchemaRulesNameFields(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Job](), reflect.TypeFor[Resources](), reflect.TypeFor[Retry](), reflect.TypeFor[Workspace](),
		reflect.TypeFor[Input](), reflect.TypeFor[WriteFile](), reflect.TypeFor[Step](),
	} {
		types[typ.Name()] = typ
	}
	tables := map[string][]string{}
	for key := range rules {
		typ, name, _ := strings.Cut(key, ".")
		tables[typ] = append(tables[typ], name)
	}
	for key := range hints {
		if typ, name, ok := strings.Cut(key, "."); ok {
			tables[typ] = append(tables[typ], name)
		}
	}
	for typ, m := range synonyms {
		for from, to := range m {
			tables[typ] = append(tables[typ], to)
			if types[typ] != nil && hasField(types[typ], from) {
				t.Errorf("synonyms[%s]: %s is a field itself", typ, from)
			}
		}
	}
	for typ, names := range tables {
		for _, name := range names {
			if types[typ] == nil || !hasField(types[typ], name) {
				t.Errorf("%s.%s: no such field", typ, name)
			}
		}
	}
}

// hasField reports whether t has a field name, or, of a name with a dot, a field whose own type has it.
func hasField(t reflect.Type, name string) bool {
	name, below, nested := strings.Cut(name, ".")
	fields := document.FieldsOf(t)
	i := slices.IndexFunc(fields, func(f document.Field) bool { return f.Name == name })
	return i >= 0 && (!nested || hasField(t.Field(fields[i].Index).Type, below))
}
