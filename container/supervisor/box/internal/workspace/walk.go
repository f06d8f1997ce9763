//go:build linux

package workspace

import (
	"bufio"
	"sort"
	"strconv"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// maxDepth is how deep a walk goes. What lies deeper is reported, not visited.
const maxDepth = 64

// writeInfo writes the record of an entry, with the error that kept it from being read.
func writeInfo(w *bufio.Writer, info wire.Info, err error) error {
	var e wire.Enc
	statusOf(info.Path, err).Put(&e)
	info.Put(&e)
	return wire.WriteRecord(w, &e)
}

func opList(t tree, s *wire.Stream, d *wire.Dec) ([]byte, error) {
	path := d.Str()
	if err := checkPath(path); err != nil {
		return nil, at(path, err)
	}
	dir, err := t.openDir(path)
	if err != nil {
		return nil, at(path, err)
	}
	defer unix.Close(dir)
	w := answer(s)
	prefix := path + "/"
	if path == "." {
		prefix = ""
	}
	names, fd, err := sortedNames(dir, ".")
	if err != nil {
		return nil, at(path, err)
	}
	defer unix.Close(fd)
	for _, name := range names {
		info, err := t.statAt(fd, name, prefix+name)
		if err == unix.ENOENT {
			continue // it is gone again
		}
		if err := writeInfo(w, info, err); err != nil {
			return nil, err
		}
	}
	return nil, w.Flush()
}

// sortedNames opens the folder base of dir and reads all its names.
func sortedNames(dir int, base string) ([]string, int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, base, flags, 0)
	if err != nil {
		return nil, -1, err
	}
	buf := make([]byte, 32<<10)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			_ = unix.Close(fd)
			return nil, -1, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	sort.Strings(names)
	return names, fd, nil
}

func opWalk(t tree, s *wire.Stream, _ *wire.Dec) ([]byte, error) {
	w := answer(s)
	if err := t.walk(w, t.fd, ".", "", 0); err != nil {
		return nil, err
	}
	return nil, w.Flush()
}

// walk writes the entry of the folder base of dir, and then what the folder holds. The entry carries the error of
// a folder that can't be read, so that walk reads the folder before it writes the entry.
func (t tree) walk(w *bufio.Writer, dir int, base, prefix string, depth int) error {
	names, fd, err := sortedNames(dir, base)
	if depth == 0 && err != nil {
		return at(".", err)
	}
	if depth > 0 {
		info, serr := t.statAt(dir, base, prefix[:len(prefix)-1])
		if serr == unix.ENOENT {
			if err == nil {
				_ = unix.Close(fd)
			}
			return nil
		}
		if err == nil {
			err = serr
		}
		if werr := writeInfo(w, info, err); werr != nil || err != nil {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
			return werr
		}
	}
	defer unix.Close(fd)
	for _, name := range names {
		if err := t.walkEntry(w, fd, name, prefix+name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) walkEntry(w *bufio.Writer, dir int, name, path string, depth int) error {
	info, err := t.statAt(dir, name, path)
	if err == unix.ENOENT {
		return nil // it is gone again
	}
	switch {
	case err != nil || info.Type != 'd':
		return writeInfo(w, info, err)
	case depth > maxDepth || len(path) >= unix.PathMax-256:
		tooDeep := &pathError{wire.CodeUnsupported, "deeper than " + strconv.Itoa(maxDepth) + " folders"}
		return writeInfo(w, info, tooDeep)
	default:
		return t.walk(w, dir, name, path+"/", depth)
	}
}
