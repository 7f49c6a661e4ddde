package nodeinit

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParsePasswd(t *testing.T) {
	text := "root:x:0:0:root:/root:/bin/bash\n" +
		"# comment:x:1:1:::\n" +
		"+nis::::::\n" +
		"short:x:1\n" +
		"negative:x:-1:1::/:/bin/sh\n" +
		"huge:x:99999999999:1::/:/bin/sh\n" +
		":x:5:5::/:/bin/sh\n" +
		"last:x:7:8::/home/last:"
	want := []User{
		{Name: "root", Home: "/root", Shell: "/bin/bash"},
		{Name: "last", UID: 7, GID: 8, Home: "/home/last"},
	}
	if got := ParsePasswd([]byte(text)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseGroup(t *testing.T) {
	want := []Group{{Name: "a", GID: 1, Members: []string{"x", "y"}}, {Name: "b", GID: 2}}
	if got := ParseGroup([]byte("a:x:1:x,,y\nb:*:2:\nc:x:none:\n")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzParsePasswd(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n"))
	f.Add([]byte("a:x:1:x,y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, u := range ParsePasswd(data) {
			if u.Name == "" || u.UID < 0 || u.GID < 0 || strings.ContainsAny(u.Name+u.Home+u.Shell, ":\n") {
				t.Errorf("user %+v", u)
			}
		}
		for _, g := range ParseGroup(data) {
			if g.Name == "" || g.GID < 0 || slices.Contains(g.Members, "") {
				t.Errorf("group %+v", g)
			}
		}
	})
}

func TestDatabase(t *testing.T) {
	d := database{lines: []string{"root:x:0:", "odd line", "croft:x:998:ann,bob", "ann:x:1000:"}}
	d.set("eve", "eve:x:1001:")
	d.set("ann", "ann:x:1002:")
	d.setMembers("croft", []string{"eve"})
	d.setMembers("none", []string{"eve"})
	d.remove("root")
	d.remove("nobody")
	want := "odd line\ncroft:x:998:eve\nann:x:1002:\neve:x:1001:\n"
	if got := string(d.bytes()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("text"), 0o600))
	must(os.Symlink("file", at("link")))
	must(unix.Mkfifo(at("fifo"), 0o600))
	must(os.Mkdir(at("dir"), 0o700))
	must(os.Truncate(at("file"), 4))
	must(os.WriteFile(at("large"), nil, 0o600))
	must(os.Truncate(at("large"), maxDatabase+1))
	for _, test := range []struct {
		name string
		ok   bool
	}{{"file", true}, {"link", false}, {"fifo", false}, {"dir", false}, {"large", false}, {"missing", false}} {
		data, err := readRegular(at(test.name))
		if (err == nil) != test.ok || test.ok && string(data) != "text" {
			t.Errorf("%s: %q, %v", test.name, data, err)
		}
	}
}

func TestConsole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const bound = 64 << 10
	c := boundConsole(f, bound)
	for i := range 10000 {
		if _, err := fmt.Fprintf(c, "line number %d\n", i); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(name); err != nil || st.Size() > bound {
			t.Fatalf("after line %d the log has %d bytes, %v", i, st.Size(), err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var first int
	if _, err := fmt.Sscanf(lines[0], "line number %d", &first); err != nil {
		t.Fatalf("the log begins in the middle of a line: %q", lines[0])
	}
	for i, line := range lines {
		if want := fmt.Sprintf("line number %d", first+i); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
	if first+len(lines) != 10000 {
		t.Errorf("the newest line is %q", lines[len(lines)-1])
	}
}

func TestApplyModes(t *testing.T) {
	mode := func(op byte, value uint32) []byte { return binary.BigEndian.AppendUint32([]byte{op}, value) }
	modes := slices.Concat(mode(53, 0), mode(51, 1), mode(3, 8), mode(4, 255), mode(128, 9600), []byte{0}, mode(53, 1))
	tty := unix.Termios{Lflag: unix.ECHO}
	tty.Cc[unix.VKILL] = 21
	applyModes(&tty, modes)
	if tty.Lflag != unix.ICANON || tty.Cc[unix.VERASE] != 8 || tty.Cc[unix.VKILL] != 0 {
		t.Errorf("lflag %x, erase %d, kill %d", tty.Lflag, tty.Cc[unix.VERASE], tty.Cc[unix.VKILL])
	}
}

func FuzzApplyModes(f *testing.F) {
	f.Add([]byte{53, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, modes []byte) {
		var tty unix.Termios
		applyModes(&tty, modes)
		if len(modes) < 5 && tty != (unix.Termios{}) {
			t.Errorf("%x changes a terminal", modes)
		}
	})
}

func TestEnvironment(t *testing.T) {
	c := command{user: User{Name: "ann", UID: 1000, Home: "/home/ann", Shell: "/bin/sh"}, env: []string{"LANG=C", "A=1", "A=2"}}
	want := []string{"HOME=/home/ann", "USER=ann", "LOGNAME=ann", "SHELL=/bin/sh", "PATH=" + userPath, "LANG=C", "A=2"}
	if got := c.environment(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, ok := range map[string]bool{"A": true, "_a1": true, "1A": false, "": false, "A B": false, "A=": false, "Ä": false} {
		if isVariable(name) != ok {
			t.Errorf("%q as a variable: %v", name, !ok)
		}
	}
}

// TestProgram runs the filter as the kernel would, on some system calls.
func TestProgram(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	p := program(arch)
	if len(p) > 4096 {
		t.Fatalf("the filter has %d instructions, the kernel takes 4096", len(p))
	}
	verdict := func(arch, nr, arg0 uint32) uint32 {
		t.Helper()
		var a uint32
		for i := 0; i < len(p); i++ {
			switch in := p[i]; in.Code {
			case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
				a = map[uint32]uint32{offsetNumber: nr, offsetArch: arch, offsetArg0: arg0}[in.K]
			case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
				if a == in.K {
					i += int(in.Jt)
				} else {
					i += int(in.Jf)
				}
			case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
				if a >= in.K {
					i += int(in.Jt)
				} else {
					i += int(in.Jf)
				}
			case unix.BPF_RET | unix.BPF_K:
				return in.K
			default:
				t.Fatalf("instruction %d has code %x", i, in.Code)
			}
		}
		t.Fatal("the filter has no end")
		return 0
	}
	for _, test := range []struct {
		name           string
		arch, nr, arg0 uint32
		want           uint32
	}{
		{"read", arch, unix.SYS_READ, 0, unix.SECCOMP_RET_ALLOW},
		{"IPv4", arch, unix.SYS_SOCKET, unix.AF_INET, unix.SECCOMP_RET_ALLOW},
		{"packets", arch, unix.SYS_SOCKET, unix.AF_PACKET, unix.SECCOMP_RET_ALLOW},
		{"hypervisor", arch, unix.SYS_SOCKET, unix.AF_VSOCK, errno(unix.EAFNOSUPPORT)},
		{"crypto", arch, unix.SYS_SOCKET, unix.AF_ALG, errno(unix.EAFNOSUPPORT)},
		{"keys", arch, unix.SYS_KEYCTL, 0, errno(unix.EPERM)},
		{"io_uring", arch, unix.SYS_IO_URING_SETUP, 0, errno(unix.EPERM)},
		{"32 bit", unix.AUDIT_ARCH_I386, unix.SYS_READ, 0, errno(unix.ENOSYS)},
		{"x32", arch, unix.SYS_SOCKET | x32Bit, unix.AF_VSOCK, errno(unix.ENOSYS)},
	} {
		if got := verdict(test.arch, test.nr, test.arg0); got != test.want {
			t.Errorf("%s: verdict %#x, want %#x", test.name, got, test.want)
		}
	}
}
