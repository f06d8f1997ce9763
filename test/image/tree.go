package testimage

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the content of an image.
type tree struct{ entries map[string]entry }

// entry is one file, folder or symlink.
type entry struct {
	path   string // without a leading slash
	kind   byte   // of package tar
	mode   int64
	uid    int // and gid
	link   string
	data   []byte
	source string // host file that holds the content, instead of data
}

func newTree() *tree { return &tree{entries: make(map[string]entry)} }

// put adds e, and the folders that lead to it.
func (t *tree) put(e entry) {
	e.path = strings.TrimPrefix(path.Clean(e.path), "/")
	if e.path == "" || e.path == "." {
		return
	}
	if dir := path.Dir(e.path); dir != "." {
		if _, ok := t.entries[dir]; !ok {
			t.put(entry{path: dir, kind: tar.TypeDir, mode: 0o755})
		}
	}
	t.entries[e.path] = e
}

func (t *tree) dir(p string, mode int64, uid int) {
	t.put(entry{path: p, kind: tar.TypeDir, mode: mode, uid: uid})
}

func (t *tree) text(p, content string) {
	t.put(entry{path: p, kind: tar.TypeReg, mode: 0o644, data: []byte(content)})
}

func (t *tree) symlink(p, target string) {
	t.put(entry{path: p, kind: tar.TypeSymlink, mode: 0o777, link: target})
}

// host adds the file source of this machine as p, executable if it is so here.
func (t *tree) host(p, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("add %s: not a regular file", source)
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	t.put(entry{path: p, kind: tar.TypeReg, mode: mode, source: source})
	return nil
}

// hostDir adds the folder source of this machine as p. Symlinks stay what they are.
func (t *tree) hostDir(p, source string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		in := path.Join(p, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			t.dir(in, 0o755, 0)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			t.symlink(in, target)
		case d.Type().IsRegular():
			return t.host(in, file)
		}
		return nil
	})
}

func (t *tree) sorted() []entry {
	out := slices.Collect(maps.Values(t.entries))
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out
}

// base adds what every program expects to find: accounts, names, a place for
// temporary files, and the certificates of this machine if it has some.
func (t *tree) base() {
	t.dir("tmp", 0o1777, 0)
	t.dir("root", 0o700, 0)
	t.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
	t.text("etc/group", "root:x:0:\nnobody:x:65534:\n")
	t.text("etc/nsswitch.conf", "hosts: files dns\n")
	for _, bundle := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"} {
		if t.host("etc/ssl/certs/ca-certificates.crt", bundle) == nil {
			return
		}
	}
}
