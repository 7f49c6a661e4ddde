package nodeinit

import (
	"strconv"
	"strings"
)

// User is an entry of a password database, passwd(5).
type User struct {
	Name        string
	UID, GID    int
	Home, Shell string
}

// Group is an entry of a group database, group(5).
type Group struct {
	Name    string
	GID     int
	Members []string
}

// ParsePasswd reads a password database. As login programs do, it passes over
// lines that make no sense.
func ParsePasswd(data []byte) []User {
	var users []User
	for _, f := range records(data, 7) {
		uid, errU := strconv.ParseUint(f[2], 10, 31)
		gid, errG := strconv.ParseUint(f[3], 10, 31)
		if f[0] == "" || errU != nil || errG != nil {
			continue
		}
		users = append(users, User{Name: f[0], UID: int(uid), GID: int(gid), Home: f[5], Shell: f[6]})
	}
	return users
}

// ParseGroup reads a group database as ParsePasswd does its own.
func ParseGroup(data []byte) []Group {
	var groups []Group
	for _, f := range records(data, 4) {
		gid, err := strconv.ParseUint(f[2], 10, 31)
		if f[0] == "" || err != nil {
			continue
		}
		g := Group{Name: f[0], GID: int(gid)}
		for m := range strings.SplitSeq(f[3], ",") {
			if m != "" {
				g.Members = append(g.Members, m)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

func records(data []byte, fields int) [][]string {
	var out [][]string
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(f) == fields && !strings.HasPrefix(line, "#") {
			out = append(out, f)
		}
	}
	return out
}

// database is the text of one account file, edited by lines so that
// everything else in it stays.
type database struct {
	file  string
	mode  uint32
	lines []string
}

func (d *database) find(name string) int {
	for i, line := range d.lines {
		if n, _, _ := strings.Cut(line, ":"); n == name {
			return i
		}
	}
	return -1
}

// remove takes the entry of a name away.
func (d *database) remove(name string) {
	for i := d.find(name); i >= 0; i = d.find(name) {
		d.lines = append(d.lines[:i], d.lines[i+1:]...)
	}
}

// set makes the entry of a name this line.
func (d *database) set(name, line string) {
	if i := d.find(name); i >= 0 {
		d.lines[i] = line
		return
	}
	d.lines = append(d.lines, line)
}

// setMembers makes exactly these accounts, in this order, those of a group.
func (d *database) setMembers(group string, members []string) {
	i := d.find(group)
	if i < 0 {
		return
	}
	if f := strings.Split(d.lines[i], ":"); len(f) == 4 {
		f[3] = strings.Join(members, ",")
		d.lines[i] = strings.Join(f, ":")
	}
}

func (d *database) bytes() []byte {
	if len(d.lines) == 0 {
		return nil
	}
	return []byte(strings.Join(d.lines, "\n") + "\n")
}
