package document

// Node is one value of a document's text, before its meaning is known. JSON and YAML are both read into Nodes, and
// Decode fills a struct from them: one strict decoder, and the same messages, for both.
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
	Null NodeKind = iota
	Bool
	Number
	String
	List
	Map
)

// String names the kind as a message does.
func (k NodeKind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case List:
		return "a list"
	default:
		return "a map"
	}
}

// position is a place in a text.
type position struct{ line, column int }

// locate gives the mistakes of a validation their places in the text of n. A path that is not in the text gets the
// place of the nearest thing around it.
func (n *Node) locate(errs Errors) {
	places := map[string]position{}
	for _, e := range errs {
		for path := e.Path; path != ""; path = parentPath(path) {
			places[path] = position{}
		}
	}
	places[""] = position{}
	n.findPlaces(places, "")
	for _, e := range errs {
		path := e.Path
		for path != "" && places[path].line == 0 {
			path = parentPath(path)
		}
		e.Line, e.Column = places[path].line, places[path].column
	}
}

// findPlaces writes the places of n and of everything in it into places, as far as these have a key for it.
func (n *Node) findPlaces(places map[string]position, path string) {
	if _, asked := places[path]; !asked {
		return
	}
	places[path] = position{n.Line, n.Column}
	for i, item := range n.Items {
		item.findPlaces(places, IndexPath(path, i))
	}
	for _, m := range n.Members {
		m.Value.findPlaces(places, KeyPath(path, m.Key))
	}
}
