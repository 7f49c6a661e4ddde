package sshtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// initVariable names the directory of the machine that a process is the first
// one of.
const initVariable = "CROFT_TEST_MACHINE"

// How the first process of a machine ends.
const (
	exitOff    = 10
	exitReboot = 11
)

// Init makes this process the first one of a machine if it was started as
// such. TestMain of tests with a lab calls it first.
func Init() {
	dir := os.Getenv(initVariable)
	if dir == "" || os.Getpid() != 1 {
		return
	}
	fmt.Fprintln(os.Stderr, boot(dir))
	os.Exit(1)
}

const sshdConfig = `Port 22
ListenAddress 127.0.0.1
HostKey /etc/ssh/machine_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
PrintMotd no
MaxStartups 100
Subsystem sftp internal-sftp
`

// boot makes the machine and stays until it is turned off, or tells why it
// cannot.
func boot(dir string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	root := filepath.Join(dir, "root")
	do := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	hostKey, err := os.ReadFile(filepath.Join(dir, "host-key"))
	if err != nil {
		return err
	}
	layers := fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", dir, dir)
	err = errors.Join(
		do("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")),
		do("mount the disk", unix.Mount("overlay", root, "overlay", 0, layers)),
		do("mount proc", unix.Mount("proc", root+"/proc", "proc", 0, "")),
		do("mount sys", unix.Mount("sysfs", root+"/sys", "sysfs", 0, "")),
		do("mount dev", unix.Mount("dev", root+"/dev", "tmpfs", 0, "mode=755")),
		do("mount run", unix.Mount("run", root+"/run", "tmpfs", 0, "mode=755")),
	)
	if err != nil {
		return err
	}
	for _, d := range []string{"/dev/pts", "/dev/shm", "/run/sshd"} {
		err = errors.Join(err, os.MkdirAll(root+d, 0o755))
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		file := root + "/dev/" + device
		err = errors.Join(err, os.WriteFile(file, nil, 0o666), unix.Mount("/dev/"+device, file, "", unix.MS_BIND, ""))
	}
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		err = errors.Join(err, os.Symlink(to, root+"/dev/"+link))
	}
	err = errors.Join(err,
		do("mount pts", unix.Mount("pts", root+"/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620,gid=5")),
		do("mount shm", unix.Mount("shm", root+"/dev/shm", "tmpfs", 0, "mode=1777")),
		do("enter the disk", unix.Chdir(root)),
		do("turn the root over", unix.PivotRoot(".", ".")),
		do("leave the host's root", unix.Unmount(".", unix.MNT_DETACH)),
		do("enter the root", unix.Chdir("/")),
		do("set the host name", unix.Sethostname([]byte(os.Getenv("CROFT_TEST_NAME")))),
	)
	for file, text := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"/run/boot_id":             {os.Getenv("CROFT_TEST_BOOT") + "\n", 0o444},
		"/etc/ssh/machine_key":     {string(hostKey), 0o600},
		"/etc/ssh/machine_config":  {sshdConfig, 0o644},
		"/usr/local/sbin/reboot":   {"#!/bin/sh\nkill -HUP 1\n", 0o755},
		"/usr/local/sbin/poweroff": {"#!/bin/sh\nkill -USR1 1\n", 0o755},
	} {
		os.Remove(file)
		err = errors.Join(err, os.WriteFile(file, []byte(text.text), text.mode))
	}
	err = errors.Join(err, do("set the boot id", unix.Mount("/run/boot_id", "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, "")))
	if err != nil {
		return err
	}
	script := "ip link set lo up\n"
	for nic := range strings.FieldsSeq(os.Getenv("CROFT_TEST_NICS")) {
		script += fmt.Sprintf("ip address flush dev %[1]s; ip link set %[1]s down\n", nic)
	}
	if out, err := exec.Command("/bin/sh", "-ec", script).CombinedOutput(); err != nil {
		return fmt.Errorf("set up the network: %w: %s", err, out)
	}
	server, err := syscall.ForkExec(sshd, []string{sshd, "-D", "-e", "-f", "/etc/ssh/machine_config"}, &syscall.ProcAttr{
		Env: []string{"PATH=" + os.Getenv("PATH")}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	go func() {
		for s := range signals {
			if _, err := os.Stat("/run/stuck"); err == nil {
				continue
			}
			if s == syscall.SIGHUP {
				os.Exit(exitReboot)
			}
			os.Exit(exitOff)
		}
	}()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("wait: %w", err)
		}
		if pid == server {
			return fmt.Errorf("sshd ended: %v", ws)
		}
	}
}
