package jobyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"slipway/job"
)

// Decode reads one job from a YAML or JSON file and validates it. Its error is
// job.Errors: every mistake with its field, line and column.
func Decode(data []byte) (*job.Job, error) {
	root, err := Parse(data)
	if err != nil {
		var field *job.FieldError
		if errors.As(err, &field) {
			return nil, job.Errors{field}
		}
		return nil, err
	}
	if root.Kind == job.NodeNull {
		return nil, job.Errors{{Line: root.Line, Column: root.Column, Message: "the job is empty"}}
	}
	return job.DecodeNode(root)
}

// Parse reads a YAML or JSON text into Nodes. A text with nothing in it is a null. Errors are *job.FieldError.
func Parse(data []byte) (*job.Node, error) {
	const byteOrderMark = "\xef\xbb\xbf"
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return job.ParseJSON(data)
	}
	if err := job.CheckText(data); err != nil {
		return nil, err
	}
	doc, err := load(data)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return &job.Node{Line: 1, Column: 1}, nil
	}
	n, fieldErr := convert(doc, 0)
	if fieldErr != nil {
		return nil, fieldErr
	}
	return n, nil
}

// load parses exactly one document and returns its value, or nil if there is none.
func load(data []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read yaml: %w", err)
	}
	var doc, more yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(err, data)
	}
	switch err := loader.Load(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxError(err, data)
	default:
		return nil, failure(&more, "a second document starts here: a file holds one")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// syntaxError turns the library's error into one of ours.
func syntaxError(err error, data []byte) error {
	e := &job.FieldError{Line: 1, Column: 1, Message: "not YAML: " + printable(err.Error())}
	var found *yaml.LoadError
	if !errors.As(err, &found) {
		return e
	}
	e.Message = "not YAML: " + printable(found.Message)
	if found.ContextMsg != "" {
		e.Message += " " + found.ContextMsg
		if found.ContextMark.Line > 0 && found.ContextMark.Line != found.Mark.Line {
			e.Message += fmt.Sprintf(" that starts on line %d", found.ContextMark.Line)
		}
	}
	if strings.HasPrefix(found.Message, "unknown anchor") {
		e.Message = noAliases
	}
	mark := found.Mark
	if mark.Line == 0 {
		mark = found.ContextMark
	}
	if strings.HasPrefix(found.Message, "control characters") {
		mark.Line, mark.Column = controlCharacter(data)
	}
	if mark.Line > 0 {
		e.Line, e.Column = mark.Line, max(mark.Column, 1)
	}
	explain(e, data)
	return e
}

// controlCharacter finds the first character that YAML does not allow, whose
// place the library does not tell.
func controlCharacter(data []byte) (line, column int) {
	line, column = 1, 1
	for _, r := range string(data) {
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r != '\t' && r != '\r' && r != '\u0085' && unicode.IsControl(r):
			return line, column
		}
		column++
	}
	return 0, 0
}

// explain adds what people usually did when the library complains: they indent
// with a tab, or write a colon within an unquoted text.
func explain(e *job.FieldError, data []byte) {
	lines := bytes.Split(data, []byte("\n"))
	if e.Line > len(lines) {
		return
	}
	line := lines[e.Line-1]
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	switch {
	case bytes.IndexByte(indent, '\t') >= 0:
		e.Message = "not YAML: indent with spaces, not with tabs"
	case strings.Contains(e.Message, "mapping values are not allowed"):
		e.Message += `: put quotes around a text that contains ": ", and check the indentation`
	}
}

// printable keeps a library's message on one line and free of control characters.
func printable(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

const (
	noAliases = "anchors and aliases (& and *) are not allowed: write the value out"
	noMerge   = "merge keys (<<) are not allowed: write the values out"
	noTags    = "tags (!) are not allowed: put quotes around what shall be a string"
)

// convert turns a value of the library into a Node, and refuses what would make a text stand for something else.
func convert(y *yaml.Node, depth int) (*job.Node, *job.FieldError) {
	switch {
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		return nil, failure(y, noAliases)
	case y.Style&yaml.TaggedStyle != 0:
		return nil, failure(y, noTags)
	}
	n := &job.Node{Line: y.Line, Column: y.Column}
	switch y.Kind {
	case yaml.ScalarNode:
		scalar(y, n)
		return n, nil
	case yaml.SequenceNode, yaml.MappingNode:
	default:
		return nil, failure(y, "not a value")
	}
	if depth++; depth > job.MaxNesting {
		return nil, failure(y, fmt.Sprintf("nested deeper than %d levels", job.MaxNesting))
	}
	if y.Kind == yaml.SequenceNode {
		return n, sequence(y, n, depth)
	}
	return n, mapping(y, n, depth)
}

func sequence(y *yaml.Node, n *job.Node, depth int) *job.FieldError {
	n.Kind = job.NodeList
	n.Items = make([]*job.Node, len(y.Content))
	for i, item := range y.Content {
		var err *job.FieldError
		if n.Items[i], err = convert(item, depth); err != nil {
			return err
		}
	}
	return nil
}

func mapping(y *yaml.Node, n *job.Node, depth int) *job.FieldError {
	n.Kind = job.NodeMap
	n.Members = make([]job.Member, 0, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		switch {
		case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
			return failure(key, noMerge)
		case key.Kind == yaml.AliasNode || key.Anchor != "":
			return failure(key, noAliases)
		case key.Kind != yaml.ScalarNode:
			return failure(key, "a key must be a string")
		case key.Style&yaml.TaggedStyle != 0:
			return failure(key, noTags)
		}
		value, err := convert(y.Content[i+1], depth)
		if err != nil {
			return err
		}
		n.Members = append(n.Members, job.Member{Key: key.Value, Line: key.Line, Column: key.Column, Value: value})
	}
	return nil
}

// scalar fills n with a scalar and what it looks like.
func scalar(y *yaml.Node, n *job.Node) {
	n.Text, n.Kind = y.Value, job.NodeString
	if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return
	}
	n.Plain = true
	switch y.Tag {
	case "!!null":
		n.Kind = job.NodeNull
	case "!!bool":
		n.Kind = job.NodeBool
	case "!!int", "!!float":
		n.Kind = job.NodeNumber
	}
}

func failure(y *yaml.Node, message string) *job.FieldError {
	return &job.FieldError{Line: max(y.Line, 1), Column: max(y.Column, 1), Message: message}
}
