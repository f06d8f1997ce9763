package box

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootID names one start of the kernel.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// thisProcess returns the namespace, the number and the start of this process: "4026531836/4711/905310". It is empty where
// /proc is another namespace's.
func thisProcess() string {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	namespace = strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
	pid := strconv.Itoa(os.Getpid())
	if self, err := os.Readlink("/proc/self"); err != nil || self != pid {
		return ""
	}
	start, err := startOf(pid)
	if err != nil {
		return ""
	}
	return strings.Join([]string{namespace, pid, start}, "/")
}

// processEnded reports that the process that said process of itself has ended. me is thisProcess: another namespace has
// numbers of its own. Whenever it is in doubt, the process lives.
func processEnded(process, me string) bool {
	namespace, rest, _ := strings.Cut(process, "/")
	number, started, ok := strings.Cut(rest, "/")
	mine, _, _ := strings.Cut(me, "/")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || namespace == "" || namespace != mine {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) { // /proc may hide processes of other users
		return true
	}
	start, err := startOf(number)
	return err == nil && start != started
}

// startOf tells when a process started, in ticks since the start of the kernel. A number is given to one process after the
// other, never with the same start.
func startOf(pid string) (string, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), " ") // the name may hold anything
	fields := strings.Fields(rest)
	const start = 19 // the 22nd of all
	if len(fields) <= start {
		return "", errors.New("no start in /proc/" + pid + "/stat")
	}
	return fields[start], nil
}
