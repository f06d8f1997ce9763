package job

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write what is generated")

func TestSchemas(t *testing.T) {
	for _, tc := range []struct {
		file   string
		typ    reflect.Type
		id     string
		closed bool
	}{
		{"schema.json", reflect.TypeFor[Job](), "urn:slipway:job:" + Version, true},
		{"result.schema.json", reflect.TypeFor[Result](), "urn:slipway:result:" + Version, false},
	} {
		want := makeSchema(t, tc.typ, tc.id, tc.closed)
		if *update {
			if err := os.WriteFile(tc.file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !bytes.Equal(readSchema(t, tc.file), want) {
			t.Errorf("%s is not what the types say: run go generate ./job", tc.file)
		}
	}
}

func readSchema(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSchema: the program prints what is in the file.
func TestSchema(t *testing.T) {
	if got, want := Schema(), readSchema(t, "schema.json"); !bytes.Equal(got, want) {
		t.Errorf("got %d bytes that are not those of schema.json", len(got))
	}
}

// compile reads a schema as a user's editor would.
func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits asks a schema about a document.
func fits(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// TestSchema_YAML: an editor reads a file's plain 17 as a number, where the reader of YAML files takes its text.
func TestSchema_YAML(t *testing.T) {
	schema := compile(t, Schema())
	for text, want := range map[string]bool{
		`"labels":{"pr":17,"draft":true}`:                          true,
		`"env":{"PORT":8080}`:                                      true,
		`"user":1000`:                                              true,
		`"resources":{"memory":1073741824}`:                        true,
		`"inputs":[{"path":"a","content":"x","mode":755}]`:         true,
		`"steps":[{"command":["sleep",1]}]`:                        true,
		`"labels":{"pr":[17]}`:                                     false,
		`"timeout":90`:                                             false,
		`"resources":{"cpus":"two"}`:                               false,
		`"inputs":[{"path":"a","content":"x","mode":"rwxr-xr-x"}]`: false,
	} {
		doc := `{"image":"a","steps":[{"run":"x"}],` + text + `}`
		if strings.HasPrefix(text, `"steps"`) {
			doc = `{"image":"a",` + text + `}`
		}
		if err := fits(t, schema, []byte(doc)); (err == nil) != want {
			t.Errorf("%s: got %v, want it to fit: %t", text, err, want)
		}
	}
}
