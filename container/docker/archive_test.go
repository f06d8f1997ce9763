package docker

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

func TestImageArchive(t *testing.T) {
	one, err := imageArchive("slipway-supervisor:x", "arm64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	two, _ := imageArchive("slipway-supervisor:x", "arm64", []byte("program"))
	if !bytes.Equal(one, two) {
		t.Error("the same input gives two archives")
	}
	files := untar(t, one)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest: %s: %v", files["manifest.json"], err)
	}
	m := manifest[0]
	if !bytes.Contains(files[m.Config], []byte(hexSum(files[m.Layers[0]]))) || !bytes.Contains(files[m.Config], []byte(`"arm64"`)) {
		t.Errorf("config %s does not name its layer and architecture", files[m.Config])
	}
	layer := untar(t, files[m.Layers[0]])
	if string(layer[".slipway/box"]) != "program" || string(layer[".slipway/hosts"]) != hostsFile {
		t.Errorf("layer: got %v", layer)
	}
}

func untar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
