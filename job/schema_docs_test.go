package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"slipway/internal/document"
)

// comments are those of this package's types, their fields and constants, each
// by its name: "Type", "Type.Field", "Constant".
type comments struct {
	t     *testing.T
	text  map[string]string
	words map[string]string // of a closed list → its constant's name, by "Type.word"
}

// readComments reads the sources of this package.
func readComments(t *testing.T) comments {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	c := comments{t: t, text: map[string]string{}, words: map[string]string{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok == token.TYPE && len(n.Specs) == 1 {
					c.text[n.Specs[0].(*ast.TypeSpec).Name.Name] = oneLine(n.Doc)
				}
			case *ast.TypeSpec:
				c.readFields(n)
			case *ast.ValueSpec:
				c.readConstant(n)
			}
			return true
		})
	}
	return c
}

func (c comments) readFields(spec *ast.TypeSpec) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range structure.Fields.List {
		for _, name := range f.Names {
			c.text[spec.Name.Name+"."+name.Name] = oneLine(either(f.Doc, f.Comment))
		}
	}
}

func (c comments) readConstant(spec *ast.ValueSpec) {
	typ, named := spec.Type.(*ast.Ident)
	if !named || len(spec.Values) != 1 {
		return
	}
	if value, ok := spec.Values[0].(*ast.BasicLit); ok {
		name := spec.Names[0].Name
		c.words[typ.Name+"."+strings.Trim(value.Value, `"`)] = name
		c.text[name] = strings.TrimPrefix(oneLine(either(spec.Doc, spec.Comment)), name+": ")
	}
}

func either(above, beside *ast.CommentGroup) *ast.CommentGroup {
	if above == nil {
		return beside
	}
	return above
}

// oneLine is the first paragraph of a comment: what follows is for programmers.
func oneLine(doc *ast.CommentGroup) string {
	first, _, _ := strings.Cut(doc.Text(), "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// ofType describes a type for people who write job files.
func (c comments) ofType(t reflect.Type) string { return c.inFile(t, t.Name(), c.text[t.Name()]) }

// ofWord describes a word of a closed list.
func (c comments) ofWord(t reflect.Type, word string) string {
	return c.text[c.words[t.Name()+"."+word]]
}

// ofWords describes all words of a closed list.
func (c comments) ofWords(t reflect.Type) string {
	var out []string
	for _, word := range enumOf(t) {
		if doc := c.ofWord(t, word); doc != "" {
			out = append(out, "`"+word+"`: "+doc)
		}
	}
	return strings.Join(out, " ")
}

// fieldDoc is a field's comment, taken apart.
type fieldDoc struct {
	meaning string
	absent  string // what it means to leave the field out
	limits  string
}

var (
	absentRE   = regexp.MustCompile(`(?:Empty|Zero|Nil) means (.+?)\.(?: |$)`)
	limitsRE   = regexp.MustCompile(`Limits: (.+?)\.(?: |$)`)
	requiredRE = regexp.MustCompile(`Required\.(?: |$)`)
)

// field describes a field. What a Go program makes of a result's empty fields
// stays as it is.
func (g *generator) field(t reflect.Type, name string) fieldDoc {
	d := fieldDoc{meaning: g.docs.inFile(t, name, g.docs.text[t.Name()+"."+name])}
	if !g.closed {
		return d
	}
	cut := func(re *regexp.Regexp) (found string) {
		if m := re.FindStringSubmatch(d.meaning); len(m) > 1 {
			found = m[1]
		}
		d.meaning = strings.TrimSpace(re.ReplaceAllString(d.meaning, ""))
		return found
	}
	d.absent, d.limits = cut(absentRE), cut(limitsRE)
	cut(requiredRE)
	return d
}

// description is d for the schema of the field's value.
func (d fieldDoc) description(value object) string {
	absent := d.absent
	if value.get("default") != nil {
		absent = ""
	}
	return sentences(d.meaning, prefixed("Left out: ", absent), prefixed("Limits: ", d.limits))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s + "."
}

func sentences(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " ")
}

var (
	identifierRE = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)
	constantRE   = regexp.MustCompile(`^(Default|Max|Min)[A-Z]`)
)

// inFile turns a comment on name into words about a file: fields are called as
// they are there, constants are their values, and the name, which stands beside it, is left out.
func (c comments) inFile(t reflect.Type, name, comment string) string {
	text, ok := strings.CutPrefix(comment, name+" ")
	if ok {
		text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	}
	text = identifierRE.ReplaceAllStringFunc(text, func(word string) string {
		if value, ok := constants[word]; ok {
			return value
		}
		if constantRE.MatchString(word) {
			c.t.Errorf("%s.%s: %s is not in constants", t.Name(), name, word)
		}
		if t.Kind() != reflect.Struct {
			return word
		}
		if f, ok := t.FieldByName(word); ok {
			return "`" + document.FieldsOf(t)[f.Index[0]].Name + "`"
		}
		return word
	})
	for i, r := range text {
		return text[:i] + string(unicode.ToUpper(r)) + text[i+len(string(r)):]
	}
	return ""
}

func sizeText(n int64) string { return Bytes(n).String() }

// constants that comments name.
var constants = map[string]string{
	"DefaultBackoff": short(DefaultBackoff), "DefaultGrace": short(DefaultGrace), "DefaultQueue": DefaultQueue,
	"DefaultTimeout": short(DefaultTimeout), "DefaultWorkdir": DefaultWorkdir,
	"MaxAttempts": strconv.Itoa(MaxAttempts), "MaxChanges": strconv.Itoa(MaxChanges), "MaxBackoff": short(MaxBackoff), "MaxCPUs": strconv.Itoa(MaxCPUs),
	"MaxCommandBytes": sizeText(MaxCommandBytes), "MaxEnvBytes": sizeText(MaxEnvBytes), "MaxEnvValue": sizeText(MaxEnvValue),
	"MaxEnvVars": strconv.Itoa(MaxEnvVars), "MaxGrace": short(MaxGrace), "MaxInputs": strconv.Itoa(MaxInputs),
	"MaxLabelBytes": strconv.Itoa(MaxLabelBytes), "MaxLabels": strconv.Itoa(MaxLabels), "MaxPids": strconv.Itoa(MaxPids),
	"MaxSize": sizeText(MaxSize), "MaxSpecBytes": sizeText(MaxSpecBytes), "MaxSteps": strconv.Itoa(MaxSteps), "MaxTimeout": short(MaxTimeout),
	"MinCPUs": strconv.FormatFloat(MinCPUs, 'g', -1, 64), "MinDisk": sizeText(MinDisk), "MinMemory": sizeText(MinMemory),
	"MinPids": strconv.Itoa(MinPids), "MinShm": sizeText(MinShm), "MinTimeout": short(MinTimeout), "MinTmp": sizeText(MinTmp),
}
