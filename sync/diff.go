package wsync

// Action is what has to be done about one path so that workspace and store agree.
type Action byte

// The actions. Upload and UploadMeta and DeleteRemote change the store, Download and DeleteLocal the
// workspace; Conflicted needs somebody to decide. A path about which nothing has to be done has no Delta.
const (
	// Upload: content, type or existence changed in the workspace.
	Upload Action = iota + 1
	// UploadMeta: only mode or target changed; no content moves.
	UploadMeta
	// DeleteRemote: it is gone from the workspace.
	DeleteRemote
	// Download: it changed in the store.
	Download
	// DeleteLocal: it is gone from the store.
	DeleteLocal
	// Conflicted: it changed on both sides, differently.
	Conflicted
)

// Delta is one path that differs. The entries are nil where the path doesn't exist.
type Delta struct {
	Path                string
	Action              Action
	Base, Local, Remote *Entry
}

// Diff compares what was restored, what is in the workspace now, and what the store
// holds now, and returns what has to be done, sorted by path. A nil base means
// that nothing was restored. A nil remote means that the store holds no state: then this is
// a first push, and never a reason to delete. Modification times alone change
// nothing. Diff is pure; the deltas point into the states.
func Diff(base, local, remote *State) []Delta {
	if remote == nil {
		base, remote = &State{}, &State{}
	}
	if base == nil {
		base = &State{}
	}
	var out []Delta
	b, l, r := base.Files, local.Files, remote.Files
	for len(b) > 0 || len(l) > 0 || len(r) > 0 {
		d := Delta{Path: lowest(b, l, r)}
		d.Base, b = take(b, d.Path)
		d.Local, l = take(l, d.Path)
		d.Remote, r = take(r, d.Path)
		if d.Action = decide(d.Base, d.Local, d.Remote); d.Action != 0 {
			out = append(out, d)
		}
	}
	return out
}

func decide(base, local, remote *Entry) Action {
	switch {
	case sameEntry(local, remote):
		return 0
	case sameEntry(local, base) && remote == nil:
		return DeleteLocal
	case sameEntry(local, base):
		return Download
	case !sameEntry(remote, base):
		return Conflicted
	case local == nil:
		return DeleteRemote
	case remote != nil && local.Type == remote.Type && (local.Type != TypeFile || sameContent(local, remote)):
		return UploadMeta
	default:
		return Upload
	}
}

// lowest is the first path of three sorted lists, one of which is not empty.
func lowest(lists ...[]Entry) string {
	first, found := "", false
	for _, l := range lists {
		if len(l) > 0 && (!found || l[0].Path < first) {
			first, found = l[0].Path, true
		}
	}
	return first
}

// take removes the entry of path from the head of a sorted list, if it is there.
func take(list []Entry, path string) (*Entry, []Entry) {
	if len(list) > 0 && list[0].Path == path {
		return &list[0], list[1:]
	}
	return nil, list
}
