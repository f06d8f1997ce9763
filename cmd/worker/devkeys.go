package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// storeKeys open the store of a data folder. They live as long as the folder: who was told them once
// goes on with them after a new start.
type storeKeys struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

func keysPath(dir string) string { return filepath.Join(dir, "s3-keys.json") }

// loadKeys reads the keys of a folder. They are empty if it has none yet.
func loadKeys(dir string) (k storeKeys, err error) {
	data, err := os.ReadFile(keysPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return storeKeys{}, nil
	}
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
	half := keysPath(dir) + ".new"
	if err := os.WriteFile(half, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save the store's keys: %w", err)
	}
	if err := os.Rename(half, keysPath(dir)); err != nil {
		return fmt.Errorf("save the store's keys: %w", err)
	}
	return nil
}
