// Package settings reads the settings of a program: each has one key, and three
// names that follow from it.
//
//	key        nats.url             in the config file:  nats: {url: …}
//	flag       --nats-url           wins over all
//	variable   SLIPWAY_NATS_URL     wins over the file
//	default                         if no other source has a value
//
// A secret has no flag, since every user of a machine can read command lines. The config file is read as strictly as
// a job, by package document: an unknown key is refused, with its line. A setting declares its rule beside its name
// (Check, Together). Resolve applies the rules before the program does anything, and names a refused value by its
// source: the flag, the variable, or the line of the file.
package settings
