package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"slipway/internal/atomicfile"
)

// storeKeys open the store of a data folder. They live as long as the folder: a person who was told them once
// goes on with them after a new start.
type storeKeys struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

func keysPath(dir string) string { return filepath.Join(dir, "s3-keys.json") }

// loadKeys reads the keys of a folder. They are empty if it has none yet.
func loadKeys(dir string) (k storeKeys, err error) {
	info, err := os.Lstat(keysPath(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storeKeys{}, nil
	case err != nil:
		return storeKeys{}, fmt.Errorf("read the store's keys: %w", err)
	case !info.Mode().IsRegular(): // to open a pipe would wait for ever
		return storeKeys{}, fmt.Errorf("read the store's keys: %s is no regular file: remove it, and new ones are made", keysPath(dir))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return storeKeys{}, fmt.Errorf("read the store's keys: others may read %s (mode %04o): remove it, and new ones are made", keysPath(dir), info.Mode().Perm())
	}
	data, err := os.ReadFile(keysPath(dir))
	if err != nil {
		return storeKeys{}, fmt.Errorf("read the store's keys: %w", err)
	}
	if err := json.Unmarshal(data, &k); err != nil || k.AccessKey == "" || k.SecretKey == "" {
		return storeKeys{}, fmt.Errorf("read the store's keys: %s holds none: remove it, and new ones are made", keysPath(dir))
	}
	return k, nil
}

// save writes the file at once or not at all: half of one would end every later start.
func (k storeKeys) save(dir string) error {
	data, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("save the store's keys: %w", err)
	}
	if err := atomicfile.Write(keysPath(dir), append(data, '\n')); err != nil {
		return fmt.Errorf("save the store's keys: %w", err)
	}
	return nil
}
