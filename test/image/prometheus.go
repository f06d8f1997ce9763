package testimage

import (
	"context"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// prometheusRecipe is Debian's Prometheus, which may be older than the tag says,
// at the places of the published image.
func prometheusRecipe(_ context.Context, arch string) (recipe, error) {
	if err := onHost(arch); err != nil {
		return recipe{}, err
	}
	inputs := []string{"prometheus"}
	var paths []string
	for _, name := range []string{"prometheus", "promtool"} {
		p, err := program(name, "prometheus")
		if err != nil {
			return recipe{}, err
		}
		digest, err := fileDigest(p)
		if err != nil {
			return recipe{}, err
		}
		paths, inputs = append(paths, p), append(inputs, digest)
	}
	return recipe{
		inputs: inputs,
		from:   "this machine's Prometheus, whatever version the tag says",
		config: v1.Config{
			Entrypoint:   []string{"/bin/prometheus"},
			Cmd:          []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"},
			User:         "nobody",
			WorkingDir:   "/prometheus",
			ExposedPorts: map[string]struct{}{"9090/tcp": {}},
			Volumes:      map[string]struct{}{"/prometheus": {}},
		},
		files: func(ctx context.Context) (*tree, error) { return prometheusFiles(ctx, paths[0], paths[1]) },
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
	const web = "/usr/share/prometheus/web" // Debian's place of the user interface
	if _, err := os.Stat(web); err == nil {
		if err := t.hostDir(web, web); err != nil {
			return nil, err
		}
	}
	if err := t.host("bin/promtool", promtool); err != nil {
		return nil, err
	}
	return t, t.host("bin/prometheus", prometheus)
}
