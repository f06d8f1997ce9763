package yamldoc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"slipway/internal/document"
)

// Parse reads a YAML or JSON text into Nodes. A text with nothing in it is a Null. Its error is a *document.FieldError.
func Parse(data []byte, kind *document.Kind) (*document.Node, error) {
	const byteOrderMark = "\xef\xbb\xbf"
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return kind.Parse(data)
	}
	if err := kind.CheckText(data); err != nil {
		return nil, err
	}
	doc, err := load(data)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return &document.Node{Line: 1, Column: 1}, nil
	}
	c := converter{maxDepth: cmp.Or(kind.MaxDepth, document.DefaultMaxDepth)}
	return c.value(doc)
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
	e := &document.FieldError{Line: 1, Column: 1, Message: "not YAML: " + printable(err.Error())}
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

// explain replaces what the library says about the two mistakes that people make most: an indentation by a tab, and a
// colon within an unquoted text.
func explain(e *document.FieldError, data []byte) {
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

// converter turns values of the library into Nodes, and refuses what would make a text stand for something else.
type converter struct{ depth, maxDepth int }

func (c *converter) value(y *yaml.Node) (*document.Node, error) {
	switch {
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		return nil, failure(y, noAliases)
	case y.Style&yaml.TaggedStyle != 0:
		return nil, failure(y, noTags)
	}
	n := &document.Node{Line: y.Line, Column: y.Column}
	switch y.Kind {
	case yaml.ScalarNode:
		scalar(y, n)
		return n, nil
	case yaml.SequenceNode, yaml.MappingNode:
	default:
		return nil, failure(y, "not a value")
	}
	if c.depth++; c.depth > c.maxDepth {
		return nil, failure(y, fmt.Sprintf("nested deeper than %d levels", c.maxDepth))
	}
	defer func() { c.depth-- }()
	if y.Kind == yaml.SequenceNode {
		return n, c.sequence(y, n)
	}
	return n, c.mapping(y, n)
}

func (c *converter) sequence(y *yaml.Node, n *document.Node) (err error) {
	n.Kind = document.List
	n.Items = make([]*document.Node, len(y.Content))
	for i, item := range y.Content {
		if n.Items[i], err = c.value(item); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) mapping(y *yaml.Node, n *document.Node) error {
	n.Kind = document.Map
	n.Members = make([]document.Member, 0, len(y.Content)/2)
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
		value, err := c.value(y.Content[i+1])
		if err != nil {
			return err
		}
		n.Members = append(n.Members, document.Member{Key: key.Value, Line: key.Line, Column: key.Column, Value: value})
	}
	return nil
}

// scalar fills n with a scalar and what it looks like.
func scalar(y *yaml.Node, n *document.Node) {
	n.Text, n.Kind = y.Value, document.String
	if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return
	}
	n.Plain = true
	switch y.Tag {
	case "!!null":
		n.Kind = document.Null
	case "!!bool":
		n.Kind = document.Bool
	case "!!int", "!!float":
		n.Kind = document.Number
	}
}

func failure(y *yaml.Node, message string) error {
	return &document.FieldError{Line: max(y.Line, 1), Column: max(y.Column, 1), Message: message}
}
