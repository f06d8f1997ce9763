package s3gateway

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {} // EOF on stdin is all there is
