package nodeinit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// croftGroup is the group of the accounts that Croft has made; its members
// may become root by sudo. It is also how Croft knows its accounts again.
const croftGroup = "croft"

const (
	firstUID    = 1000
	lastUID     = 59999
	maxDatabase = 1 << 20
	sudoersDir  = "/etc/sudoers.d"
)

// applyAccounts makes Croft's accounts of this node exactly those of want and
// returns the user ids of the accounts that went. The home directories of
// those stay, and are theirs again when they come back.
func applyAccounts(want []Account) (gone []int, err error) {
	passwd, err := readDatabase("/etc/passwd", 0o644)
	if err != nil {
		return nil, err
	}
	group, err := readDatabase("/etc/group", 0o644)
	if err != nil {
		return nil, err
	}
	shadow, err := readDatabase("/etc/shadow", 0o640)
	if err != nil {
		return nil, err
	}

	ours := groupNamed(group, croftGroup).Members
	var names []string
	for _, a := range want {
		names = append(names, a.Login)
	}
	for _, name := range ours {
		u, known := userNamed(passwd, name)
		if slices.Contains(names, name) || !known || u.UID < firstUID {
			continue
		}
		gone = append(gone, u.UID)
		passwd.remove(name)
		shadow.remove(name)
		for _, g := range ParseGroup(group.bytes()) {
			if i := slices.Index(g.Members, name); i >= 0 {
				group.setMembers(g.Name, slices.Delete(g.Members, i, i+1))
			}
		}
		group.remove(name)
	}

	if group.find(croftGroup) < 0 {
		gid := freeID(998, 100, -1, func(id int) bool { return groupHas(group, id) })
		group.set(croftGroup, fmt.Sprintf("%s:x:%d:", croftGroup, gid))
	}
	var made []User
	for _, a := range want {
		u, known := userNamed(passwd, a.Login)
		if known && u.UID < firstUID {
			return nil, fmt.Errorf("account %q: the node's system has one of that name; choose another", a.Login)
		}
		if !known {
			u = newUser(a.Login, passwd, group)
			note := strings.Map(func(r rune) rune {
				if r == ':' || r < ' ' || r == ',' {
					return ' '
				}
				return r
			}, a.Note)
			passwd.set(u.Name, fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", u.Name, u.UID, u.GID, note, u.Home, u.Shell))
			shadow.set(u.Name, u.Name+":*:19000:0:99999:7:::")
			if group.find(u.Name) < 0 {
				group.set(u.Name, fmt.Sprintf("%s:x:%d:", u.Name, u.GID))
			}
		}
		made = append(made, u)
	}
	group.setMembers(croftGroup, names)

	for _, d := range []*database{group, passwd, shadow} {
		if err := d.write(); err != nil {
			return nil, err
		}
	}
	for _, u := range made {
		if err := makeHome(u); err != nil {
			return nil, err
		}
	}
	if hasSudo() {
		rule := "%" + croftGroup + " ALL=(ALL:ALL) NOPASSWD: ALL\n"
		if err := replaceFile(sudoersDir+"/croft", []byte(rule), 0o440, 0); err != nil {
			return nil, fmt.Errorf("let the accounts become root by sudo: %w", err)
		}
	}
	return gone, nil
}

// hasSudo reports whether the image has a way to become root. Where it has
// not, the users log in as root with their own keys.
func hasSudo() bool {
	st, err := os.Stat("/usr/bin/sudo")
	dir, errDir := os.Stat(sudoersDir)
	return err == nil && st.Mode()&fs.ModeSetuid != 0 && errDir == nil && dir.IsDir()
}

func newUser(login string, passwd, group *database) User {
	u := User{Name: login, Home: "/home/" + login, Shell: "/bin/sh"}
	for _, sh := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(sh); err == nil {
			u.Shell = sh
			break
		}
	}
	taken := func(id int) bool {
		for _, other := range ParsePasswd(passwd.bytes()) {
			if other.UID == id {
				return true
			}
		}
		return groupHas(group, id)
	}
	var st unix.Stat_t
	if err := unix.Lstat(u.Home, &st); err == nil && int(st.Uid) >= firstUID && int(st.Uid) <= lastUID && !taken(int(st.Uid)) {
		u.UID = int(st.Uid)
	} else {
		u.UID = freeID(firstUID, lastUID, 1, taken)
	}
	u.GID = u.UID
	return u
}

func freeID(from, to, step int, taken func(int) bool) int {
	for id := from; id != to; id += step {
		if !taken(id) {
			return id
		}
	}
	return to
}

func userNamed(passwd *database, name string) (User, bool) {
	for _, u := range ParsePasswd(passwd.bytes()) {
		if u.Name == name {
			return u, true
		}
	}
	return User{}, false
}

func groupNamed(group *database, name string) Group {
	for _, g := range ParseGroup(group.bytes()) {
		if g.Name == name {
			return g
		}
	}
	return Group{}
}

func groupHas(group *database, gid int) bool {
	for _, g := range ParseGroup(group.bytes()) {
		if g.GID == gid {
			return true
		}
	}
	return false
}

// lookUp finds an account and its groups in the node's databases as they are
// now. The empty name is root, also where the node has no databases.
func lookUp(name string) (User, []uint32, error) {
	if name == "" {
		name = "root"
	}
	u := User{Name: "root", Home: "/root", Shell: "/bin/sh"}
	passwd, err := readDatabase("/etc/passwd", 0o644)
	if err != nil {
		return u, nil, err
	}
	found, known := userNamed(passwd, name)
	switch {
	case known:
		u = found
	case name != "root":
		return u, nil, fmt.Errorf("the node has no account %q", name)
	}
	if u.Shell == "" {
		u.Shell = "/bin/sh"
	}
	groups := []uint32{}
	if group, err := readDatabase("/etc/group", 0o644); err == nil {
		for _, g := range ParseGroup(group.bytes()) {
			if slices.Contains(g.Members, u.Name) && g.GID != u.GID {
				groups = append(groups, uint32(g.GID))
			}
		}
	}
	return u, groups, nil
}

// makeHome makes a home directory that does not exist yet, out of /etc/skel.
func makeHome(u User) error {
	if err := os.MkdirAll(path.Dir(u.Home), 0o755); err != nil {
		return fmt.Errorf("make the home of %s: %w", u.Name, err)
	}
	if err := os.Mkdir(u.Home, 0o755); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("make the home of %s: %w", u.Name, err)
	}
	skel, err := os.ReadDir("/etc/skel")
	if err != nil {
		skel = nil
	}
	for _, e := range skel {
		data, err := readRegular("/etc/skel/" + e.Name())
		if err != nil {
			continue
		}
		if err := replaceFile(u.Home+"/"+e.Name(), data, 0o644, u.UID); err != nil {
			return fmt.Errorf("fill the home of %s: %w", u.Name, err)
		}
	}
	if err := os.Lchown(u.Home, u.UID, u.GID); err != nil {
		return fmt.Errorf("make the home of %s: %w", u.Name, err)
	}
	return nil
}

// endProcesses kills every process of these user ids. It looks again after
// each round, for those that were started meanwhile.
func endProcesses(uids []int) {
	const rounds = 100
	again := len(uids) > 0
	for i := 0; again && i < rounds; i++ {
		again = false
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == 1 {
				continue
			}
			var st unix.Stat_t
			if unix.Stat("/proc/"+e.Name(), &st) != nil || !slices.Contains(uids, int(st.Uid)) {
				continue
			}
			if !isZombie(pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				again = true
			}
		}
	}
}

func isZombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func readDatabase(file string, mode uint32) (*database, error) {
	d := &database{file: file, mode: mode}
	data, err := readRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	if text := strings.TrimRight(string(data), "\n"); text != "" {
		d.lines = strings.Split(text, "\n")
	}
	return d, nil
}

func (d *database) write() error {
	gid := 0
	if d.mode&0o007 == 0 {
		gid = 42 // Debian's group shadow; its helpers read the file
	}
	if err := replaceFile(d.file, d.bytes(), d.mode, 0); err != nil {
		return fmt.Errorf("write accounts: %w", err)
	}
	return os.Lchown(d.file, 0, gid)
}

// readRegular reads a file that the node's users may have made into anything:
// only a regular one of bounded size is read, and nothing blocks.
func readRegular(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDatabase+1))
	if err == nil && len(data) > maxDatabase {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxDatabase)
	}
	return data, err
}

// replaceFile writes a file of an owner in one step.
func replaceFile(name string, data []byte, mode uint32, owner int) error {
	tmp := name + ".croft"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, fs.FileMode(mode))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chown(owner, owner), f.Chmod(fs.FileMode(mode)), f.Close())
	if err != nil {
		os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, name)
}
