//go:build linux

package privs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/test/eventually"
)

// shared reports whether other goroutines may run on the thread of this one: it is not locked.
func shared() bool {
	for range 1000 {
		own, beside := unix.Gettid(), make(chan int)
		go func() { beside <- unix.Gettid() }()
		if <-beside == own {
			return true
		}
	}
	return false
}

// Rights that can't be had are an error, before the function is called, and whatever was changed is changed back.
func TestAsUserDenied(t *testing.T) {
	boxtest.NeedsRoot(t)
	const nobody = -1 // an id that the kernel does not set
	done := make(chan struct{})
	go func() { // the thread must not be locked already
		defer close(done)
		err := AsUser(nobody, testGID, func() error { t.Error("the function was called"); return nil })
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("AsUser: got %v, want EPERM", err)
		}
		uid, _ := unix.SetfsuidRetUid(-1)
		gid, _ := unix.SetfsgidRetGid(-1)
		if uid != os.Geteuid() || gid != os.Getegid() {
			t.Errorf("rights afterwards: got %d:%d, want %d:%d", uid, gid, os.Geteuid(), os.Getegid())
		}
		if !shared() {
			t.Error("the thread afterwards: got a locked one, want one for any goroutine")
		}
	}()
	<-done
}

// A thread that can't get its rights back ends with its goroutine: no other may run on it.
func TestAsUserKeepsRights(t *testing.T) {
	boxtest.NeedsRoot(t)
	thread := make(chan int)
	lose := func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // of this lock, not of AsUser's
		tid := unix.Gettid()
		if tid == unix.Getpid() {
			tid = 0 // the first thread can't end
		} else {
			_ = AsUser(testUID, testGID, func() error {
				_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, testUID, testUID, testUID)
				if errno != 0 {
					t.Errorf("become another user: %v", errno)
				}
				return nil
			})
		}
		thread <- tid
	}
	tid := 0
	eventually.True(t, eventually.Patience, "a goroutine has a thread other than the first", func() bool {
		go lose()
		tid = <-thread
		return tid != 0
	})
	eventually.True(t, eventually.Patience, "the thread has ended", func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		return os.IsNotExist(err)
	})
}

func init() {
	boxtest.Role("unprivileged", func() {
		if err := errors.Join(syscall.Setgid(testGID), syscall.Setuid(testUID)); err != nil {
			panic(err)
		}
		said := make(chan string)
		go func() { // the goroutine of an init function has its thread to itself
			called := false
			err := AsUser(testUID, testGID+1, func() error { called = true; return errors.New("boom") })
			said <- fmt.Sprintln(called, err, shared())
		}()
		select {
		case s := <-said:
			fmt.Print(s)
		case <-time.After(eventually.Patience):
			fmt.Println("nothing")
		}
	})
}

// A process without privileges can't change its rights. It calls the function with those it has, on any thread.
func TestAsUserUnprivileged(t *testing.T) {
	boxtest.NeedsRoot(t)
	if got, want := boxtest.Output(t, "unprivileged"), "true boom true\n"; got != want {
		t.Errorf("the function was called, its error, a thread for any goroutine: got %q, want %q", got, want)
	}
}
