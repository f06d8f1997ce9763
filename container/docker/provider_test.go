package docker

import (
	"strings"
	"testing"
)

func TestNew_Host(t *testing.T) {
	t.Setenv("DOCKER_HOST", "nonsense") // not looked at where a host is given
	for host, ok := range map[string]bool{
		"unix:///run/docker.sock": true, "tcp://10.0.0.7:2376": true, "tcp://[::1]:2375/path": true, "https://engine:443": true,
		"/var/run/docker.sock": false, "engine:2375": false, "tcp://engine": false, "unix://": false, "ssh://engine": false, "htp://engine:1": false,
	} {
		p, err := New(Config{Host: host})
		if err == nil {
			err = p.Close()
		}
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "unix:///") {
			t.Errorf("%s: got error %v, accepted should be %v", host, err, ok)
		}
	}
}
