package ssh

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"croft/urn"
)

// run runs a command of the operator's on the manager's machine. What it says
// goes to the node's log. It and its children end with the context or the
// limit, or when the driver is opened again after its process was killed: what
// goes on would undo what is done next.
func (d *Driver) run(ctx context.Context, sliver urn.URN, limit time.Duration, command, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has not ended after %s", command[0], limit))
	defer cancel()
	mark, err := d.journal.beginCommand()
	if err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	defer d.journal.forgetCommand(mark)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", markOf(mark)}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		return errors.Join(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), endMarked(mark))
	}
	cmd.WaitDelay = time.Second
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	var last string
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		lines := bufio.NewReaderSize(read, 4096)
		for {
			line, _, err := lines.ReadLine()
			if len(line) > 0 {
				last = string(line)
				d.note(sliver, "%s: %s", command[0], line)
			}
			if err != nil {
				return
			}
		}
	}()
	err = cmd.Run()
	write.Close()
	<-logged
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if last != "" {
		err = errors.Join(err, errors.New("it said at last: "+last))
	}
	return fmt.Errorf("%s: %w", command[0], err)
}

// A command's processes are known by a variable of their environment, and the
// journal has a file of its name for as long as the command runs.
const (
	markVariable = "CROFT_RUN"
	commandsDir  = "commands"
)

func markOf(mark string) string { return markVariable + "=" + mark }

func (j *journal) beginCommand() (mark string, err error) {
	mark = rand.Text()
	if err := os.WriteFile(filepath.Join(j.dir, commandsDir, mark), nil, 0o600); err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	return mark, nil
}

// forgetCommand is for a command that has ended. A file that stays does no harm.
func (j *journal) forgetCommand(mark string) { _ = os.Remove(filepath.Join(j.dir, commandsDir, mark)) }

// endCommands ends commands that an earlier process had under way when it was
// killed.
func (j *journal) endCommands() error {
	return j.each(commandsDir, func(mark string, _ []byte) error {
		if err := endMarked(mark); err != nil {
			return err
		}
		j.forgetCommand(mark)
		return nil
	})
}

// endMarked ends all processes with a mark, and those that they start meanwhile.
func endMarked(mark string) error {
	const tries, pause = 100, 10 * time.Millisecond
	for range tries {
		pids, err := runningWith(mark)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			endOne(pid, mark)
		}
		time.Sleep(pause) // the kernel takes them down
	}
	return fmt.Errorf("processes with %s do not end", markOf(mark))
}

// endOne ends a process, if it is still that one.
func endOne(pid int, mark string) {
	p, err := os.FindProcess(pid) // holds on to it, whose number may be given anew
	if err != nil {
		return
	}
	defer p.Release()
	if runsWith(pid, mark) {
		_ = p.Kill()
	}
}

func runningWith(mark string) (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && runsWith(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// runsWith reads a process's environment, which one that has ended has not got.
func runsWith(pid int, mark string) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	want := []byte(markOf(mark))
	for v := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}
