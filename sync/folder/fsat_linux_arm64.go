package folder

import "syscall"

const sysFstatat = syscall.SYS_FSTATAT
