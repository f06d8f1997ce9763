package document

// Parse reads one JSON value into Nodes with their places. Its error is a *FieldError, for the first thing that is no
// JSON or beyond a limit of k. Duplicate keys are kept, for Decode to refuse.
func (k *Kind) Parse(data []byte) (*Node, error) {
	r, err := NewReader(data, k)
	if err != nil {
		return nil, err
	}
	if r.space(); r.pos == len(data) {
		return nil, r.fail("the " + k.Name + " is empty")
	}
	n, err := r.node()
	if err != nil {
		return nil, err
	}
	return n, r.End()
}

// node reads any value.
func (r *Reader) node() (n *Node, err error) {
	n = &Node{}
	n.Line, n.Column = r.place(r.pos)
	switch r.peek() {
	case '{':
		n.Kind = Map
		err = r.members(func(key string, at int) error {
			m := Member{Key: key}
			m.Line, m.Column = r.place(at)
			m.Value, err = r.node()
			n.Members = append(n.Members, m)
			return err
		})
	case '[':
		n.Kind = List
		err = r.items(func() error {
			item, err := r.node()
			n.Items = append(n.Items, item)
			return err
		})
	case '"':
		n.Kind = String
		err = r.str(&n.Text)
	default:
		n.Kind, n.Text, err = r.scalar()
	}
	return n, err
}
