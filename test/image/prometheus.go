package testimage

import (
	"context"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// prometheusRecipe is Debian's Prometheus, which may be older than the tag says,
// at the places of the published image.
func prometheusRecipe(ctx context.Context, arch string) (recipe, error) {
	if err := onHost(arch); err != nil {
		return recipe{}, err
	}
	server, err := program(ctx, "prometheus", "prometheus", anyProgram)
	if err != nil {
		return recipe{}, err
	}
	tool, err := program(ctx, "promtool", "prometheus", anyProgram)
	if err != nil {
		return recipe{}, err
	}
	inputs := []string{"prometheus"}
	for _, p := range []found{server, tool} {
		digest, err := fileDigest(p.path)
		if err != nil {
			return recipe{}, err
		}
		inputs = append(inputs, digest)
	}
	return recipe{
		inputs: inputs,
		from:   server.from + ", whatever version the tag says",
		config: v1.Config{
			Entrypoint:   []string{"/bin/prometheus"},
			Cmd:          []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"},
			User:         "nobody",
			WorkingDir:   "/prometheus",
			ExposedPorts: map[string]struct{}{"9090/tcp": {}},
			Volumes:      map[string]struct{}{"/prometheus": {}},
		},
		files: func(ctx context.Context) (*tree, error) { return prometheusFiles(ctx, server.path, tool.path) },
	}, nil
}

func prometheusFiles(ctx context.Context, prometheus, promtool string) (*tree, error) {
	t := newTree()
	t.base()
	t.dir("prometheus", 0o777, 65534)
	t.text("etc/prometheus/prometheus.yml", "scrape_configs: []\n")
	if err := t.libraries(ctx, prometheus, promtool); err != nil {
		return nil, err
	}
	// Debian's place of the user interface, beside /usr/bin
	web := filepath.Join(filepath.Dir(prometheus), "../share/prometheus/web")
	if _, err := os.Stat(web); err == nil {
		if err := t.hostDir("/usr/share/prometheus/web", web); err != nil {
			return nil, err
		}
	}
	if err := t.host("bin/promtool", promtool); err != nil {
		return nil, err
	}
	return t, t.host("bin/prometheus", prometheus)
}
