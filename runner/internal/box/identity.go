package box

import (
	"crypto/rand"
	"maps"
	"os"

	"slipway/container"
)

// identity says in labels which worker a box is of, so that another one can tell whether that worker is dead. A name can't:
// two workers on one engine may have the same.
type identity struct {
	instance string // random, of this Fleet
	place    map[string]string
}

// newIdentity asks the system for the place of this process. What the system can't tell stays empty, and then nobody finds
// this worker dead: its boxes end by themselves, and what is left of them is removed by its age.
func newIdentity() identity {
	host, _ := os.Hostname()
	return identity{instance: rand.Text(), place: map[string]string{
		container.LabelHost: host, container.LabelBoot: bootID(), container.LabelProcess: thisProcess(),
	}}
}

func (i identity) labels() map[string]string {
	labels := maps.Clone(i.place)
	labels[container.LabelInstance] = i.instance
	return labels
}

// owns reports whether the box is of this Fleet.
func (i identity) owns(labels map[string]string) bool {
	return labels[container.LabelInstance] == i.instance
}

// dead reports that the worker with these labels has certainly ended: it was a process of this system, since the same start
// of its kernel, and is none any more. Of a worker on another host, or in another container, nothing is known.
func (i identity) dead(labels map[string]string) bool {
	for _, same := range []string{container.LabelHost, container.LabelBoot} {
		if i.place[same] == "" || labels[same] != i.place[same] {
			return false
		}
	}
	return processEnded(labels[container.LabelProcess], i.place[container.LabelProcess])
}
