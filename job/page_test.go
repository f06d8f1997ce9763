package job

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/internal/document"
)

const pageFile = "../docs/job.md"

// pageTypes have a table of fields on the page, in its order.
var pageTypes = []reflect.Type{
	reflect.TypeFor[Job](), reflect.TypeFor[Step](), reflect.TypeFor[WriteFile](), reflect.TypeFor[Resources](),
	reflect.TypeFor[Retry](), reflect.TypeFor[Workspace](), reflect.TypeFor[Input](),
}

// generatedRE finds the parts of the page that are not written by hand.
var generatedRE = regexp.MustCompile(`(?s)(<!-- generated: (\w+) -->\n).*?(<!-- end -->)`)

// The tables say what the JSON Schema says.
func TestSchemaPage(t *testing.T) {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{docs: readComments(t), done: map[reflect.Type]bool{}, closed: true}
	parts := map[string]string{"reasons": g.reasonTable(), "unsupported": unsupportedTable()}
	for _, typ := range pageTypes {
		parts[typ.Name()] = g.fieldTable(typ)
	}
	want := generatedRE.ReplaceAllStringFunc(string(page), func(part string) string {
		m := generatedRE.FindStringSubmatch(part)
		table, ok := parts[m[2]]
		if !ok {
			t.Errorf("%s: nothing is called %q", pageFile, m[2])
		}
		delete(parts, m[2])
		return m[1] + "\n" + table + "\n" + m[3]
	})
	for name := range parts {
		t.Errorf("%s: the part %s is not there, or twice", pageFile, name)
	}
	switch {
	case *update:
		if err := os.WriteFile(pageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(page):
		t.Errorf("%s is not what the types say: run go generate ./job", pageFile)
	}
}

// A type that the schema describes has its table on the page.
func TestSchemaPageHasEveryType(t *testing.T) {
	g := &generator{docs: readComments(t), done: map[reflect.Type]bool{}, closed: true}
	g.value(reflect.TypeFor[Job]())
	for typ := range g.done {
		if typ.Kind() == reflect.Struct && !slices.Contains(pageTypes, typ) {
			t.Errorf("%s is not in pageTypes", typ)
		}
	}
}

func (g *generator) fieldTable(t reflect.Type) string {
	var b strings.Builder
	b.WriteString("| field | type | left out | limits | meaning |\n|---|---|---|---|---|\n")
	for _, f := range document.FieldsOf(t) {
		field := t.Field(f.Index)
		doc := g.field(t, field.Name)
		meaning := sentences(doc.meaning, g.docs.ofWords(field.Type))
		row(&b, "`"+f.Name+"`", typeName(field.Type), leftOut(t, f.Name, doc), orDash(doc.limits), meaning)
	}
	return b.String()
}

// row writes a row of a table, in which a bar would end the cell.
func row(b *strings.Builder, cells ...string) {
	for _, cell := range cells {
		b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// typeName says what a value looks like, with a link to where that is explained.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return typeName(t.Elem())
	}
	switch t {
	case reflect.TypeFor[Duration]():
		return "[duration](#values)"
	case reflect.TypeFor[Bytes]():
		return "[size](#values)"
	case reflect.TypeFor[Mode]():
		return "[permission](#values)"
	case reflect.TypeFor[time.Time]():
		return "[time](#values)"
	case reflect.TypeFor[[]byte]():
		return "base64"
	case reflect.TypeFor[map[string]string]():
		return "map of strings"
	case reflect.TypeFor[[]string]():
		return "list of strings"
	}
	switch list := enumOf(t); {
	case list != nil:
		return "`" + strings.Join(list, "`, `") + "`"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Struct:
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	}
	_, word, found := strings.Cut(kind.Describe(t), " ")
	if !found || t.Kind() == reflect.Bool {
		return kind.Describe(t)
	}
	return word
}

// leftOut says what it means that a field is not there.
func leftOut(t reflect.Type, name string, doc fieldDoc) string {
	if required, ok := structRules[t.Name()].get("required").([]string); ok && slices.Contains(required, name) {
		return "**required**"
	}
	value := rules[t.Name()+"."+name].get("default")
	if value == nil {
		return orDash(doc.absent)
	}
	text, err := marshal(value)
	if err != nil {
		return err.Error()
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

func (g *generator) reasonTable() string {
	again := map[Class]string{
		ClassJob: "as `retry` says", ClassInfra: "on the worker's budget", ClassShutdown: "at once, at no cost", ClassNone: "no",
	}
	var b strings.Builder
	b.WriteString("| reason | outcome | tried again | meaning |\n|---|---|---|---|\n")
	for _, r := range Reasons() {
		outcome, meaning, _ := strings.Cut(g.docs.ofWord(reflect.TypeFor[Reason](), string(r)), ": ")
		if !strings.HasSuffix(meaning, notGiven) {
			row(&b, "`"+string(r)+"`", "`"+outcome+"`", again[r.Class()], meaning)
		}
	}
	return b.String()
}

// notGiven marks a reason that stands in the list for what is not built yet.
const notGiven = "not given by this version"

// A reason is marked as not given exactly if no program gives it.
func TestReasonsNotGiven(t *testing.T) {
	c := readComments(t)
	var code strings.Builder
	for _, pattern := range []string{"../runner/*.go", "../runner/internal/*/*.go", "natsqueue/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v and %v, want files", pattern, files, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				code.Write(text)
			}
		}
	}
	for _, r := range Reasons() {
		name := c.words["Reason."+string(r)]
		given := regexp.MustCompile(`\bjob\.` + name + `\b`).MatchString(code.String())
		if marked := strings.HasSuffix(c.text[name], notGiven); marked == given {
			t.Errorf("%s: marked as %q: %v; used: %v", name, notGiven, marked, given)
		}
	}
}

func unsupportedTable() string {
	var b strings.Builder
	b.WriteString("| in | refused |\n|---|---|\n")
	for _, t := range pageTypes {
		if names := unsupported[t.Name()]; names != nil {
			row(&b, t.Name(), "`"+strings.Join(names, "`, `")+"`")
		}
	}
	return b.String()
}

// The limits in a comment are numbers of the rules, and are there where there is a rule.
func TestSchemaLimitsAreTold(t *testing.T) {
	g := &generator{docs: readComments(t), closed: true}
	for _, typ := range pageTypes {
		for _, f := range document.FieldsOf(typ) {
			field := typ.Field(f.Index)
			limits := g.field(typ, field.Name).limits
			rule := rules[typ.Name()+"."+f.Name]
			ranged := field.Type == reflect.TypeFor[Duration]() || field.Type == reflect.TypeFor[Bytes]()
			if limits == "" && (ranged || rule.get("pattern") != nil || rule.get("not") != nil) {
				t.Errorf("%s.%s: its comment lacks a sentence with Limits", typ.Name(), field.Name)
			}
			for _, key := range []string{"minimum", "maximum", "maxLength", "maxItems", "maxProperties"} {
				if n := rule.get(key); n != nil && !tells(limits, n) {
					t.Errorf("%s.%s: %q does not tell the %s of %v", typ.Name(), field.Name, limits, key, n)
				}
			}
		}
	}
}

// tells reports whether limits hold n, as a number or as a size.
func tells(limits string, n any) bool {
	number := fmt.Sprint(n)
	if bytes, ok := n.(int); ok && strings.Contains(limits, Bytes(bytes).String()) {
		return true
	}
	return slices.Contains(regexp.MustCompile(`[0-9.]+`).FindAllString(limits, -1), number)
}
