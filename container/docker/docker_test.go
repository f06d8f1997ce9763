package docker

import (
	"testing"

	"slipway/container"
	"slipway/container/containertest"
	testimage "slipway/test/image"
)

func TestConformance(t *testing.T) {
	setup(t)
	containertest.Run(t, func(t *testing.T) container.Provider { return setup(t).Provider },
		containertest.Options{Image: testimage.Shell, Shell: true, Users: true})
}
