// Package testimage puts the images that the tests and docker-compose.yml name
// into the engine, with a registry or without one.
//
//	Ensure("nats:2.15.3") ─► there already? ─► registry answers? pull ─► else build:
//
//	  nats, versitygw           go build, static, at the version of tools/go.mod
//	  worker                    go build, static, of this checkout
//	  busybox                   a static busybox: this machine's, or of Debian's package busybox-static
//	  golang                    this machine's Go and git, and a static busybox
//	  prometheus                this machine's prometheus, or of Debian's package
//	                               │
//	                 one deterministic layer ─► docker load
//
// A Debian package is fetched by apt, and unpacked into the folder slipway of the user's cache. Nothing is
// installed, and it takes no root. It works on Debian, and on the distributions made from it.
//
// A built image behaves like the published one of the same tag: same entrypoint,
// same user, same volumes. It carries the label slipway.image.key, a digest of what it was
// made of, so that nothing is built twice; and slipway.image.from in plain words.
//
// SLIPWAY_IMAGES chooses: auto (default: pull, and build only if that fails),
// pull, or build. The worker's image has no registry and is always built.
// SLIPWAY_REGISTRY names a registry that has copies of the public images, and is asked
// instead of Docker Hub: with mirror.example.com, mirror.example.com/library/busybox:1.36 is pulled.
//
// An image that no registry gives and that can't be built here is unavailable. Require skips a test that needs it.
//
// The engine is reached through the docker command, so DOCKER_HOST and contexts
// work as usual. Builds from this machine's files need Linux and an engine of the
// same architecture; those from Go modules do not.
package testimage
