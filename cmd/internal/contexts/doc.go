// Package contexts remembers where queues are, as the nats command does with its contexts: each has a name and a file, and
// one of them is in use.
//
//	~/.config/slipway/context/NAME.yaml   settings, as in a config file: nats, s3, and queue
//	~/.config/slipway/context.txt         the name of the one in use
//
// A context's settings lose against flags and variables. The files may have passwords in them, so nobody but their owner may
// read them. XDG_CONFIG_HOME moves the folder.
package contexts
