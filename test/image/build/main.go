// Command build puts images into the engine and says how:
//
//	go run ./test/image/build nats versitygw golang
//
// Names are those of package testimage, short or whole. SLIPWAY_IMAGES chooses
// between auto, pull and build.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	testimage "slipway/test/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/image/build IMAGE...\n\nimages:")
		for _, img := range testimage.Images() {
			fmt.Fprintf(os.Stderr, "  %-12s %s\n", img.Name, img.Ref)
		}
		os.Exit(2)
	}
	for _, name := range os.Args[1:] {
		start := time.Now()
		did, err := testimage.Provide(ctx, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			os.Exit(1)
		}
		fmt.Printf("%-12s %s (%.1fs)\n", name, did, time.Since(start).Seconds())
	}
}
