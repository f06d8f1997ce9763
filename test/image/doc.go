// Package testimage puts the images that the tests and docker-compose.yml name
// into the engine, with a registry or without one.
//
//	Ensure("nats:2.15.3") ─► there already? ─► registry answers? pull ─► else build:
//
//	  nats, versitygw           go build, static, at the version of tools/go.mod
//	  worker                    go build, static, of this checkout
//	  busybox, golang           this machine's static busybox, GOROOT and git
//	  prometheus                this machine's prometheus (Debian's package)
//	                               │
//	                 one deterministic layer ─► docker load
//
// A built image behaves like the published one of the same tag: same entrypoint,
// same user, same volumes. It carries the label slipway.image.key, a digest of what it was
// made of, so that nothing is built twice; and slipway.image.from in plain words.
//
// SLIPWAY_IMAGES chooses: auto (default: pull, and build only if that fails),
// pull, or build. The worker's image has no registry and is always built.
//
// The engine is reached through the docker command, so DOCKER_HOST and contexts
// work as usual. Builds from this machine's files need Linux and an engine of the
// same architecture; those from Go modules do not.
package testimage
