package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is tp on a pseudo-terminal, as in a user's shell.
type terminal struct {
	w      *world
	master *os.File
	cmd    *exec.Cmd
	seen   bytes.Buffer
}

// terminal starts tp in the world.
func (w *world) terminal(env []string, args ...string) *terminal {
	w.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.Skipf("no pseudo-terminal here: %v", err)
	}
	w.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	w.ok(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	w.ok(err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	w.ok(err)
	defer slave.Close()
	cmd := exec.Command(os.Getenv("TP_DEVCLUSTER"), append([]string{"exec", w.release, "--"}, w.command(env, args...)...)...)
	cmd.Dir, cmd.Env = w.lab, append(os.Environ(), w.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	w.ok(cmd.Start())
	kill := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	w.Cleanup(func() { kill.Stop() })
	return &terminal{w: w, master: master, cmd: cmd}
}

// until reads until the screen holds text.
func (x *terminal) until(text string) {
	x.w.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(x.seen.String(), text) {
		n, err := x.master.Read(buf)
		x.seen.Write(buf[:n])
		if err != nil {
			x.w.Fatalf("%q never came; the screen has\n%s", text, x.seen.String())
		}
	}
}

func (x *terminal) send(text string) {
	x.w.Helper()
	_, err := x.master.WriteString(text)
	x.w.ok(err)
}

// end reads to the end. Linux says EIO when the last writer is gone.
func (x *terminal) end() (screen string, code int) {
	x.w.Helper()
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.seen.Write(buf[:n])
		if err != nil {
			break
		}
	}
	x.cmd.Wait() //nolint:errcheck // the code is read below
	return x.seen.String(), x.cmd.ProcessState.ExitCode()
}
