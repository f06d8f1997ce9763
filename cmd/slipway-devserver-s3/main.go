// Command slipway-devserver-s3 is the S3 gateway of worker dev and of tests. Package slipway/devserver starts it and
// documents what it does; it is not for use by hand.
//
// It is a module of its own: neither a production worker nor the library's go.mod may list what the gateway needs.
package main

import (
	"os"

	"slipway/cmd/internal/devchild"
	"slipway/internal/devprotocol"
)

func main() {
	program := devchild.Program{
		Name:  devprotocol.S3Program,
		About: "The S3 gateway of worker dev, for development.",
		Start: startS3,
	}
	os.Exit(program.Main(os.Args))
}
