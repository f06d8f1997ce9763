package wsync

// diff compares what the head lists with what the workspace holds now, and returns what a push changes, sorted by path.
// Both lists are sorted. A workspace without a head has an empty list, so everything is added and nothing is deleted.
// Modification times alone change nothing.
func diff(head, now []entry) []Change {
	var out []Change
	for len(head) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(head) > 0 && head[0].Path < now[0].Path:
			out = append(out, Change{head[0].Path, Deleted})
			head = head[1:]
		case len(head) == 0 || now[0].Path < head[0].Path:
			out = append(out, Change{now[0].Path, Added})
			now = now[1:]
		default:
			if !sameEntry(&head[0], &now[0]) {
				out = append(out, Change{now[0].Path, Modified})
			}
			head, now = head[1:], now[1:]
		}
	}
	return out
}

// sameEntry tells whether two entries of one path are stored alike.
func sameEntry(a, b *entry) bool {
	return a.Type == b.Type && sameMeta(a, b) && (a.Type != TypeFile || sameContent(a, b))
}

// sameMeta compares what can change without the content. Times don't count; neither do setuid, setgid and sticky, which
// are stored but not restored.
func sameMeta(a, b *entry) bool {
	return a.Target == b.Target && (a.Type == TypeSymlink || a.Mode&0o777 == b.Mode&0o777)
}

// sameContent tells whether two files hold the same bytes, as far as can be known without reading.
func sameContent(a, b *entry) bool {
	if a.dirty || b.dirty || a.Size != b.Size {
		return false
	}
	var zero [32]byte
	if a.SHA256 != zero && b.SHA256 != zero {
		return a.SHA256 == b.SHA256
	}
	return a.MD5 == b.MD5
}
