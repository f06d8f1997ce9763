package container

import (
	"fmt"
	"strings"
)

// AllowsImage tells whether a job may name this image. The reference is first
// spelled out as an engine would ("alpine" is "docker.io/library/alpine:latest"), so that a
// short name can't slip past a list of long ones; an image named by its bare id
// is on no list. The error is a *Denied.
func (p Policy) AllowsImage(ref string) error {
	if len(p.Images) == 0 {
		return nil
	}
	name, ok := NormalizeImage(ref)
	for _, prefix := range p.Images {
		if ok && prefixMatches(name, prefix) {
			return nil
		}
	}
	return &Denied{Field: "image", Key: "images", Detail: fmt.Sprintf("%q is below none of the allowed prefixes", ref)}
}

// prefixMatches: a prefix ends where a part of the name ends, so that
// ghcr.io/acme does not open ghcr.io/acme-evil.
func prefixMatches(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || strings.ContainsRune("/:@", rune(rest[0])))
}

// checkPrefix says what is wrong with an element of Policy.Images, or nothing. A prefix below which no image can be
// would refuse every job, and show only at the first one.
func checkPrefix(prefix string) string {
	if domain, _, ok := strings.Cut(prefix, "/"); !ok || !isDomain(domain) || strings.ContainsAny(prefix, " \t\n*") {
		return fmt.Sprintf("%q must begin with a registry and a slash, such as \"docker.io/library/\"", prefix)
	}
	probes := []string{prefix, prefix + "/x"} // an image, or a folder of them
	if strings.HasSuffix(prefix, "/") {
		probes = []string{prefix + "x"}
	}
	for _, image := range probes {
		if (Policy{Images: []string{prefix}}).AllowsImage(image) == nil {
			return ""
		}
	}
	full, ok := NormalizeImage(probes[0])
	lower := strings.ToLower(prefix)
	switch {
	case strings.Contains(prefix, "@"): // a digest may be cut short
		return ""
	case ok:
		return fmt.Sprintf("no image is below %.80q: an engine calls such a one %.80q", prefix, full)
	case lower != prefix:
		return fmt.Sprintf("no image is below %.80q, since their names are in lower case: %.80q", prefix, lower)
	}
	return fmt.Sprintf("no image can be below %.80q", prefix)
}

// NormalizeImage spells an image reference out as registry/repository:tag or …@digest.
// It reports false for what is no reference, among them an engine's bare image id.
func NormalizeImage(ref string) (string, bool) {
	if ref == "" || len(ref) > 1024 || strings.HasPrefix(ref, "sha256:") || isHex64(ref) {
		return "", false
	}
	domain, rest, found := strings.Cut(ref, "/")
	if !found || !isDomain(domain) {
		domain, rest = "docker.io", ref
	}
	if domain == "index.docker.io" {
		domain = "docker.io"
	}
	name, digest, pinned := strings.Cut(rest, "@")
	repo, tag, tagged := strings.Cut(name, ":")
	if !validRepo(repo) || tagged && !validTag(tag) || pinned && !validDigest(digest) {
		return "", false
	}
	if domain == "docker.io" && !strings.Contains(repo, "/") {
		repo = "library/" + repo
	}
	out := domain + "/" + repo
	switch {
	case tagged:
		out += ":" + tag
	case !pinned:
		out += ":latest"
	}
	if pinned {
		out += "@" + digest
	}
	return out, true
}

func isDomain(s string) bool {
	return s == "localhost" || s != "" && strings.ContainsAny(s, ".:") && !strings.ContainsAny(s, "/@ ")
}

func validRepo(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || !alnum(part[0]) || !alnum(part[len(part)-1]) || !only(part, "._-") {
			return false
		}
	}
	return true
}

func validTag(s string) bool {
	return s != "" && len(s) <= 128 && s[0] != '.' && s[0] != '-' && only(strings.ToLower(s), "._-")
}

func validDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && isHex64(hex)
}

func isHex64(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// only: s is made of lower-case letters, digits and the characters in extra.
func only(s, extra string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte(extra, s[i]) < 0 {
			return false
		}
	}
	return true
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
