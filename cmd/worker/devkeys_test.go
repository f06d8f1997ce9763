package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoreKeys(t *testing.T) {
	needLinux(t)
	want := storeKeys{"a", "s"}
	for _, tc := range []struct {
		name    string
		prepare func(path string) error
		refused string // by loadKeys; "" if the keys can be saved and read
	}{
		{"new", func(string) error { return nil }, ""},
		{"a link to somewhere", func(path string) error { return os.Symlink("/dev/null", path) }, "no regular file"},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file"},
		{"open to others", func(path string) error {
			return os.WriteFile(path, []byte(`{"access_key":"x","secret_key":"y"}`), 0o644) //nolint:gosec // that is the case
		}, "others may read"},
		{"of no keys", func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) }, "holds none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.prepare(keysPath(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := loadKeys(dir); tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(err.Error(), keysPath(dir)) {
					t.Errorf("loadKeys: got %v, want that it is %s, and the file", err, tc.refused)
				}
				return
			}
			if err := want.save(dir); err != nil {
				t.Fatal(err)
			}
			if got, err := loadKeys(dir); err != nil || got != want {
				t.Errorf("loadKeys: got %v and %v, want what was saved", got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) != 0 {
				t.Errorf("save left %v", left)
			}
		})
	}
}
