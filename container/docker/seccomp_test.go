//go:build linux

package docker

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// denied lists calls that the source allows and no step needs.
var denied = []string{
	"socketcall",        // 32-bit x86 would reach every socket family through it, past the filter on socket
	"lookup_dcookie",    // profiling
	"name_to_handle_at", // half of an escape known as shocker
	"kcmp", "memfd_secret", "vmsplice",
}

// strict makes the source's profile stricter: four socket families, no rule that
// waits for a capability that no box has, and without what is in denied.
func strict(p *seccomp.Seccomp) *seccomp.Seccomp {
	out := *p
	out.Syscalls = nil
	for _, rule := range p.Syscalls {
		if slices.Contains(rule.Names, "socket") || rule.Includes != nil && len(rule.Includes.Caps) > 0 {
			continue
		}
		r := *rule
		r.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(n string) bool { return slices.Contains(denied, n) })
		if len(r.Names) > 0 {
			out.Syscalls = append(out.Syscalls, &r)
		}
	}
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		out.Syscalls = append(out.Syscalls, allowSocket(specs.LinuxSeccompArg{Index: 0, Value: family, Op: specs.OpEqualTo}))
	}
	out.Syscalls = append(out.Syscalls, allowSocket(
		specs.LinuxSeccompArg{Index: 0, Value: unix.AF_NETLINK, Op: specs.OpEqualTo},
		specs.LinuxSeccompArg{Index: 2, Value: unix.NETLINK_ROUTE, Op: specs.OpEqualTo}))
	return &out
}

func allowSocket(args ...specs.LinuxSeccompArg) *seccomp.Syscall {
	return &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}}
}

func TestSeccompProfile(t *testing.T) {
	want, err := json.MarshalIndent(strict(seccomp.DefaultProfile()), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "seccomp.json", append(want, '\n'))
}

func TestSeccompProfileIsClosed(t *testing.T) {
	var p seccomp.Seccomp
	if err := json.Unmarshal([]byte(seccompProfile), &p); err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != specs.ActErrno {
		t.Errorf("default action: got %s, want %s", p.DefaultAction, specs.ActErrno)
	}
	never := append([]string{
		"io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key", "bpf",
		"userfaultfd", "unshare", "setns", "mount", "perf_event_open", "open_by_handle_at", "kexec_load", "pivot_root",
	}, denied...)
	for _, rule := range p.Syscalls {
		for _, name := range rule.Names {
			if rule.Action == specs.ActAllow && slices.Contains(never, name) {
				t.Errorf("%s is allowed", name)
			}
			if name == "socket" && len(rule.Args) == 0 {
				t.Errorf("socket is allowed for every family")
			}
		}
	}
}
