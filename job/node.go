package job

// Node is one value of a job's text, before anybody asked what it means. JSON
// and YAML are both read into Nodes, and DecodeNode makes a Job of them: one
// strict decoder, and the same messages, for both.
type Node struct {
	Kind NodeKind
	// Text of a scalar: a string's content, or a number, boolean or null as it was written.
	Text string
	// Plain: the notation has unquoted strings, and this scalar was not quoted. Where a string is
	// wanted its Text is taken as it stands, so that 1.10, 0755 and no keep their spelling.
	Plain bool
	// Line and Column of the first character, from 1, the column in characters.
	Line, Column int
	// Items of a list.
	Items []*Node
	// Members of a map in the order of the text, duplicates included.
	Members []Member
}

// Member is one entry of a map.
type Member struct {
	Key          string
	Line, Column int // of the key
	Value        *Node
}

// NodeKind is what a Node looks like.
type NodeKind int

// The kinds.
const (
	NodeNull NodeKind = iota
	NodeBool
	NodeNumber
	NodeString
	NodeList
	NodeMap
)

// String names the kind as a message does.
func (k NodeKind) String() string {
	switch k {
	case NodeNull:
		return "null"
	case NodeBool:
		return "a boolean"
	case NodeNumber:
		return "a number"
	case NodeString:
		return "a string"
	case NodeList:
		return "a list"
	default:
		return "a map"
	}
}

// errorf makes a mistake at the position of n.
func (n *Node) errorf(path, message string) *FieldError {
	return &FieldError{Path: path, Line: n.Line, Column: n.Column, Message: message}
}

// position is a place in a text.
type position struct{ line, column int }

// locate gives the mistakes of a validation their places in the text of n. What
// is missing there is put to the nearest thing around it.
func (n *Node) locate(errs Errors) {
	places := map[string]position{}
	for _, e := range errs {
		for path := e.Path; path != ""; path = parentPath(path) {
			places[path] = position{}
		}
	}
	places[""] = position{}
	n.fill(places, "")
	for _, e := range errs {
		path := e.Path
		for path != "" && places[path].line == 0 {
			path = parentPath(path)
		}
		e.Line, e.Column = places[path].line, places[path].column
	}
}

// fill writes the places of n and of what it holds into places, as far as these
// have a key for it.
func (n *Node) fill(places map[string]position, path string) {
	if _, asked := places[path]; !asked {
		return
	}
	places[path] = position{n.Line, n.Column}
	for i, item := range n.Items {
		item.fill(places, indexPath(path, i))
	}
	for _, m := range n.Members {
		m.Value.fill(places, keyPath(path, m.Key))
	}
}
