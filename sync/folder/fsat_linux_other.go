//go:build linux && !amd64 && !arm64

package folder

import "syscall"

const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
