package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slipway/container/supervisor"
)

// hostsFile is what a box without a network needs to find itself.
const hostsFile = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.0.1\t" + hostname + "\n"

// file is one entry of an archive. A nil body is a folder.
type file struct {
	name string
	mode int64
	body []byte
}

// imageArchive makes an image that holds the supervisor, in the format of docker
// save: an engine loads it without a registry and without a builder. The same input gives
// the same bytes, so that workers that race make the same image.
func imageArchive(tag, arch string, box []byte) ([]byte, error) {
	dir := strings.TrimPrefix(supervisor.MountPath, "/")
	layer, err := tarball([]file{
		{dir + "/", 0o755, nil},
		{dir + "/box", 0o555, box},
		{dir + "/hosts", 0o444, []byte(hostsFile)},
	})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{supervisor.BoxPath}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hexSum(layer)}},
		"history":      []map[string]any{{"created_by": "slipway"}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode image config: %w", err)
	}
	configName := hexSum(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{tag}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode image manifest: %w", err)
	}
	return tarball([]file{{"layer.tar", 0o644, layer}, {configName, 0o644, config}, {"manifest.json", 0o644, manifest}})
}

func tarball(files []file) ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if f.body == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write archive: %w", err)
		}
		if _, err := tw.Write(f.body); err != nil {
			return nil, fmt.Errorf("write archive: %w", err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("write archive: %w", err)
	}
	return buf.Bytes(), nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
