//go:build linux

package workspace

import (
	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// statAt describes the entry base of dir.
func (t tree) statAt(dir int, base, path string) (wire.Info, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wire.Info{Path: path, Type: 'o'}, err
	}
	info := t.infoOf(path, &st)
	if info.Type == 'l' {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, base, buf)
		if err != nil {
			return info, err
		}
		info.Target = string(buf[:n])
	}
	return info, nil
}

// infoOf describes what stat found. On a file system in memory the change time is left unknown: there a page that
// was first read through a shared mapping is written without a fault, so that neither of the two times moves.
func (t tree) infoOf(path string, st *unix.Stat_t) wire.Info {
	info := wire.Info{
		Path: path, Type: 'o', Mode: uint32(st.Mode) & 0o7777, Size: st.Size,
		ModTime: st.Mtim.Nano(), ChangeTime: st.Ctim.Nano(), Inode: st.Ino,
	}
	if t.memory {
		info.ChangeTime = 0
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		info.Type = 'f'
	case unix.S_IFDIR:
		info.Type = 'd'
	case unix.S_IFLNK:
		info.Type = 'l'
	}
	return info
}
