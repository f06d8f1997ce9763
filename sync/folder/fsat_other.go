//go:build !linux || (!amd64 && !arm64)

package folder

import "os"

type (
	files  = portableFiles
	handle = portableHandle
)

func openFiles(root *os.Root) (files, error) { return openPortable(root) }
