package job

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write what is generated")

func TestSchemas(t *testing.T) {
	for _, tc := range []struct {
		file     string
		embedded []byte
		typ      reflect.Type
		id       string
		closed   bool
	}{
		{"schema.json", Schema(), reflect.TypeFor[Job](), "urn:slipway:job:" + Version, true},
		{"result.schema.json", ResultSchema(), reflect.TypeFor[Result](), "urn:slipway:result:" + Version, false},
	} {
		want := makeSchema(t, tc.typ, tc.id, tc.closed)
		if *update {
			if err := os.WriteFile(tc.file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !bytes.Equal(tc.embedded, want) {
			t.Errorf("%s is not what the types say: run go generate ./job", tc.file)
		}
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
