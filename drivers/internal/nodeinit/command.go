package nodeinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// command is a program to start as an account of the node.
type command struct {
	file   string // the program; find sets it
	argv   []string
	user   User
	groups []uint32
	env    []string // added to the account's own
}

// streams are the near ends of a program's pipes.
type streams struct{ in, out, err *os.File }

// start runs the command with pipes.
func (c command) start(procs *processes) (*process, streams, error) {
	procs.begin.Lock()
	defer procs.begin.Unlock()
	var near streams
	var far []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i, end := range []**os.File{&near.in, &near.out, &near.err} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(far, near.in, near.out, near.err)...)
			return nil, streams{}, fmt.Errorf("make pipes: %w", err)
		}
		mine, theirs := r, w
		if i == 0 {
			mine, theirs = w, r
		}
		*end = mine
		far = append(far, theirs)
		// The account opens /dev/stderr and the like by name, too.
		if err := theirs.Chown(c.user.UID, c.user.GID); err != nil {
			closeAll(append(far, near.in, near.out, near.err)...)
			return nil, streams{}, fmt.Errorf("hand over pipes: %w", err)
		}
	}
	p, err := c.launch(procs, far, false)
	closeAll(far...)
	if err != nil {
		closeAll(near.in, near.out, near.err)
		return nil, streams{}, err
	}
	return p, near, nil
}

// startOn runs the command on a terminal.
func (c command) startOn(procs *processes, tty *os.File) (*process, error) {
	procs.begin.Lock()
	defer procs.begin.Unlock()
	return c.launch(procs, []*os.File{tty, tty, tty}, true)
}

func (c command) launch(procs *processes, files []*os.File, terminal bool) (*process, error) {
	attr := &syscall.ProcAttr{
		Dir: c.user.Home,
		Env: c.environment(),
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Setctty:    terminal,
			Credential: &syscall.Credential{Uid: uint32(c.user.UID), Gid: uint32(c.user.GID), Groups: c.groups},
		},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if st, err := os.Stat(attr.Dir); err != nil || !st.IsDir() {
		attr.Dir = "/"
	}
	p, err := procs.start(c.file, c.argv, attr)
	if errors.Is(err, fs.ErrPermission) && attr.Dir != "/" {
		attr.Dir = "/"
		p, err = procs.start(c.file, c.argv, attr)
	}
	return p, err
}

// environment is the account's own, then what was asked for; of a variable
// that is set twice the last counts.
func (c command) environment() []string {
	search := userPath
	if c.user.UID == 0 {
		search = rootPath
	}
	env := []string{
		"HOME=" + c.user.Home, "USER=" + c.user.Name, "LOGNAME=" + c.user.Name,
		"SHELL=" + c.user.Shell, "PATH=" + search, "LANG=C.UTF-8",
	}
	at := map[string]int{}
	var out []string
	for _, v := range append(env, c.env...) {
		name, _, _ := strings.Cut(v, "=")
		if i, twice := at[name]; twice {
			out[i] = v
			continue
		}
		at[name] = len(out)
		out = append(out, v)
	}
	return out
}

// find looks the program up in the command's own PATH.
func (c *command) find() error {
	name := c.argv[0]
	if strings.Contains(name, "/") {
		c.file = name
		return nil
	}
	search := ""
	for _, v := range c.environment() {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			search = p
		}
	}
	for _, dir := range strings.Split(search, ":") {
		at := path.Join("/", dir, name)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			c.file = at
			return nil
		}
	}
	return fmt.Errorf("%s: command not found in %s", name, search)
}
