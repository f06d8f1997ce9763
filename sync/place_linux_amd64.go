package wsync

import "syscall"

const sysFstatat = syscall.SYS_NEWFSTATAT
