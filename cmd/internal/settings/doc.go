// Package settings reads what a program is told: each setting has one key, and
// three names that follow from it.
//
//	key        nats.url             in the config file:  nats: {url: …}
//	flag       --nats-url           wins over all
//	variable   SLIPWAY_NATS_URL     wins over the file
//	default                         if nobody says anything
//
// A secret has no flag, since command lines can be read by every user of a
// machine. The config file is read strictly: what is not understood is refused,
// with its line. Each setting has its rule beside its
// name (Check, Together), and Resolve applies them: a value that is refused is refused under the name by which it was
// given, before anything is done with it.
package settings
