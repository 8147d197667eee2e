package durable

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Process names one process for ever: a pid alone is reused, and means another
// process in another pid namespace or on another host.
type Process struct {
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
	Space string `json:"space"` // pid namespace, "pid:[4026531836]"
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // start time in clock ticks since boot, proc_pid_stat(5) field 22
}

func self() Process {
	space, _ := os.Readlink("/proc/self/ns/pid")
	p := Process{Boot: bootID(), Space: space, PID: os.Getpid()}
	p.Start, _ = startTime(p.PID)
	return p
}

// Gone reports whether the process has certainly ended. It is false whenever
// the process cannot be judged from here: another host, boot or container.
func (p Process) Gone() bool {
	me := self()
	if p.Boot == "" || p.Space == "" || p.Boot != me.Boot || p.Space != me.Space || p.PID <= 0 {
		return false
	}
	if errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) {
		return true
	}
	start, ok := startTime(p.PID)
	return ok && p.Start != 0 && start != p.Start
}

// Here reports whether the process lives and has its number in this process's
// own pid namespace, so that it may be signalled by it.
func (p Process) Here() bool {
	me := self()
	start, ok := startTime(p.PID)
	return p.Boot != "" && p.Boot == me.Boot && p.Space == me.Space && ok && start != 0 && start == p.Start
}

// BootID is another one after each start of the machine; "" when /proc does not tell.
func BootID() string { return bootID() }

// startTime is 0, false when /proc does not tell. A zombie counts as ended.
func startTime(pid int) (uint64, bool) {
	data, err := Read("/proc/"+strconv.Itoa(pid)+"/stat", 8<<10)
	if err != nil {
		return 0, false
	}
	// The command name in parentheses may hold blanks and parentheses.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	if fields[0] == "Z" {
		return 0, true
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}

var bootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})

// monotonic is CLOCK_MONOTONIC (clock 1 of clock_gettime(2)): the same for all
// processes of this boot, not set by anybody, and at rest while the machine is
// suspended. Package time has no absolute reading of it.
func monotonic() time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
