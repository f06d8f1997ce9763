//go:build linux && race

package boxtest

const raceDetector = true
