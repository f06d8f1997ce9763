// The probe makes system calls that a closed box must refuse, and prints those
// that it could make.
package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

func main() {
	sockets := map[string][3]int{
		"AF_ALG": {38, syscall.SOCK_SEQPACKET, 0}, "AF_VSOCK": {40, syscall.SOCK_STREAM, 0},
		"AF_PACKET": {17, syscall.SOCK_RAW, 0}, "AF_NETLINK netfilter": {16, syscall.SOCK_RAW, 12},
		"AF_BLUETOOTH": {31, syscall.SOCK_RAW, 0}, "AF_KEY": {15, syscall.SOCK_RAW, 2},
		"raw ICMP": {2, syscall.SOCK_RAW, 1},
	}
	for name, s := range sockets {
		_, err := syscall.Socket(s[0], s[1], s[2])
		report("socket "+name, err)
	}
	for name, s := range map[string][3]int{
		"AF_UNIX": {1, 1, 0}, "AF_INET": {2, 1, 0}, "AF_INET6": {10, 1, 0}, "AF_NETLINK route": {16, 3, 0},
	} {
		if _, err := syscall.Socket(s[0], s[1], s[2]); err != nil && !errors.Is(err, syscall.EAFNOSUPPORT) {
			fmt.Println("refused: socket", name, err)
		}
	}
	var params [120]byte
	for name, nr := range numbers {
		_, _, e := syscall.Syscall6(nr, 1, uintptr(unsafe.Pointer(&params)), 0, 0, 0, 0)
		report(name, e)
	}
	_, _, e := syscall.Syscall(unshare, 0x10000000, 0, 0)
	report("unshare a user namespace", e)
	report("chroot", syscall.Chroot("/tmp"))
	report("mount", syscall.Mount("none", "/tmp", "tmpfs", 0, ""))
	report("setuid 0", syscall.Setuid(0))
	if f, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0); err == nil {
		fmt.Println("possible: open the supervisor's memory", f.Name())
	}
	fmt.Println("done")
}

// report prints what was not refused by EPERM. ENOSYS also means that it can't be done.
func report(what string, err error) {
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSYS) {
		fmt.Println("possible:", what, err)
	}
}
