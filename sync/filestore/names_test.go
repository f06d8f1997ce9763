package filestore

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPath: a key's path stays in the folder, is no other key's where case makes no difference, and fits every file system.
func FuzzPath(f *testing.F) {
	for _, key := range []string{"a", "a/b", "../x", "A", "a//", "@lock", "\xff%41", strings.Repeat("é", 200), strings.Repeat("/", 1024)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name, err := pathOf(key)
		if err != nil {
			if key != "" && len(key) <= maxKey {
				t.Errorf("path of %q: %v", key, err)
			}
			return
		}
		if !filepath.IsLocal(name) || strings.ToLower(name) != name {
			t.Errorf("path of %q: got %q, want one below the folder, in lower case", key, name)
		}
		folders := strings.Split(name, "/")
		above := ""
		for i, component := range folders {
			if component == "" || len(component) > 255 || strings.HasPrefix(component, "@") {
				t.Errorf("path of %q: got a component %q", key, component)
			}
			ok := false
			if i == len(folders)-1 {
				above, ok = objectKey(above, component)
			} else {
				above, ok = folderKey(above, component)
			}
			if !ok {
				t.Fatalf("path of %q: %q is no name of ours", key, component)
			}
		}
		if above != key {
			t.Errorf("key of %q: got %q, want %q", name, above, key)
		}
	})
}
