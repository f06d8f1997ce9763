package job

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"slipway/internal/document"
)

// Patterns of single values. The JSON Schema repeats them word for word, so they use only syntax that its dialect
// shares with Go's.
const (
	idPattern       = `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	queuePattern    = `^[a-z0-9][a-z0-9-]{0,31}$`
	labelPattern    = `^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`
	envNamePattern  = `^[A-Za-z_][A-Za-z0-9_]{0,127}$`
	userPattern     = `^(0|[1-9][0-9]{0,9})(:(0|[1-9][0-9]{0,9}))?$`
	platformPattern = `^linux/[a-z0-9_]{1,32}(/[a-z0-9.]{1,16})?$`
	prefixPattern   = `^[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63}){0,3}$`
	sha256Pattern   = `^[0-9a-f]{64}$`
	imagePattern    = `^` +
		`((localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*:[0-9]+|\[[0-9A-Fa-f:]+\](:[0-9]+)?)/)?` + // registry
		`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*` + // repository
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` + // tag
		`(@[a-z0-9]+([.+_-][a-z0-9]+)*:[0-9a-f]{32,128})?$` // digest
)

var (
	idRE       = regexp.MustCompile(idPattern)
	queueRE    = regexp.MustCompile(queuePattern)
	labelRE    = regexp.MustCompile(labelPattern)
	envNameRE  = regexp.MustCompile(envNamePattern)
	userRE     = regexp.MustCompile(userPattern)
	platformRE = regexp.MustCompile(platformPattern)
	prefixRE   = regexp.MustCompile(prefixPattern)
	sha256RE   = regexp.MustCompile(sha256Pattern)
	imageRE    = regexp.MustCompile(imagePattern)
)

// Bounds of names.
const (
	maxNameBytes  = 128
	maxImageBytes = 512
	maxPathBytes  = 4096
	maxPathPart   = 255
	maxID         = 1<<31 - 1 // of a user or a group
)

// The checks below return what is wrong with a value, or "".

// checkName checks a text for people: it goes to terminals and log lines.
func checkName(s string) string {
	switch {
	case len(s) > maxNameBytes:
		return "longer than " + strconv.Itoa(maxNameBytes) + " bytes"
	case !utf8.ValidString(s):
		return "not UTF-8"
	}
	for _, r := range s {
		if steersTerminal(r) {
			return "the character " + strconv.QuoteRuneToASCII(r) + " is not allowed in a name"
		}
	}
	return ""
}

// steersTerminal reports whether r moves the cursor, ends a line, or turns the
// direction of writing: a name must not be able to look like something else.
func steersTerminal(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// checkText checks a string that a program in the box will get.
func checkText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "not UTF-8: give bytes as content_base64"
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain a zero byte"
	}
	return ""
}

// checkUser checks uid[:gid].
func checkUser(s string) string {
	if !userRE.MatchString(s) {
		return `not "uid" or "uid:gid" in numbers, such as "1000:1000": ` + document.Quote(s) +
			" (names would be looked up in files of the image)"
	}
	for id := range strings.SplitSeq(s, ":") {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n > maxID {
			return id + " is more than the highest id, " + strconv.Itoa(maxID)
		}
	}
	return ""
}

// checkImage checks the form of an image's name. Whether it exists the engine knows.
func checkImage(s string) string {
	switch {
	case len(s) > maxImageBytes:
		return "longer than " + strconv.Itoa(maxImageBytes) + " bytes"
	case imageRE.MatchString(s):
		return ""
	case strings.Contains(s, "://"):
		return "leave out the scheme: an image's name starts with its registry, not with " + document.Quote(s[:strings.Index(s, "://")+3])
	case imageRE.MatchString(strings.ToLower(s)):
		return "a repository's name is written in lower case: " + document.Quote(strings.ToLower(s))
	}
	return `not an image's name such as "golang:1.26" or "ghcr.io/acme/tool@sha256:…": ` + document.Quote(s)
}

// checkPath checks the path of a file of the workspace.
func checkPath(p string) string {
	if msg := checkPathText(p); msg != "" {
		return msg
	}
	first, _, _ := strings.Cut(p, "/")
	switch {
	case path.IsAbs(p):
		return "must be relative to the workspace: " + document.Quote(p)
	case leaves(p):
		return "must stay in the workspace: " + document.Quote(p)
	case path.Clean(p) != p:
		return "write it as " + document.Quote(path.Clean(p))
	case strings.HasPrefix(first, ".sandbox-state"):
		return document.Quote(p) + " is slipway's own: names that start with .sandbox-state are taken"
	}
	return ""
}

// checkFile checks the path of something in the workspace that is not the workspace itself.
func checkFile(p string) string {
	if p == "." {
		return "must name a file or a folder in the workspace, not the workspace itself"
	}
	return checkPath(p)
}

// leaves reports whether a relative path climbs out of where it starts.
func leaves(p string) bool {
	clean := path.Clean(p)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// checkPathText checks what every path must be.
func checkPathText(p string) string {
	switch {
	case p == "":
		return "must not be empty"
	case len(p) > maxPathBytes:
		return "longer than " + strconv.Itoa(maxPathBytes) + " bytes"
	case !utf8.ValidString(p):
		return "not UTF-8"
	}
	for _, r := range p {
		if steersTerminal(r) {
			return "the character " + strconv.QuoteRuneToASCII(r) + " is not allowed in a path"
		}
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > maxPathPart {
			return "has a part of more than " + strconv.Itoa(maxPathPart) + " bytes"
		}
	}
	return ""
}

// kernelFolders can be no working directory: they hold open descriptors and devices.
var kernelFolders = []string{"/proc", "/sys", "/dev"}

// systemFolders can hold no workspace: it would hide files that every program needs.
var systemFolders = []string{
	"/.slipway", "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/run", "/sbin", "/tmp", "/usr", "/var/run",
}

// imageFolders can hold a workspace below them, but not be one.
var imageFolders = []string{"/", "/var", "/home", "/root", "/opt"}

// checkDir checks the working directory of a command: below the workspace, or absolute.
func checkDir(p string) string {
	if !path.IsAbs(p) {
		return checkPath(p)
	}
	if msg := checkPathText(p); msg != "" {
		return msg
	}
	if path.Clean(p) != p {
		return "write it as " + document.Quote(path.Clean(p))
	}
	return checkOutside(p, kernelFolders)
}

// checkWorkdir checks where the workspace shall lie.
func checkWorkdir(p string) string {
	const most = 1024
	switch {
	case !path.IsAbs(p):
		return `must be absolute, such as "` + DefaultWorkdir + `"`
	case len(p) > most || strings.ContainsAny(p, ":,"):
		return "must not be longer than " + strconv.Itoa(most) + " bytes, nor contain ':' or ','"
	}
	if msg := checkDir(p); msg != "" {
		return msg
	}
	for _, folder := range imageFolders {
		if p == folder {
			return document.Quote(p) + " would hide what the image holds there: use a folder below it"
		}
	}
	return checkOutside(p, systemFolders)
}

func checkOutside(p string, folders []string) string {
	for _, folder := range folders {
		if p == folder || strings.HasPrefix(p, folder+"/") {
			return "must not lie in " + folder
		}
	}
	return ""
}
