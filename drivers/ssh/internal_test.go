package ssh

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMarked(t *testing.T) {
	const mark = "croft-MARK"
	for _, c := range []struct {
		name    string
		writes  []string
		passed  string
		trailer string
		found   bool
	}{
		{"at once", []string{"out\n\x01croft-MARK 7\n"}, "out\n", "7", true},
		{"byte by byte", strings.Split("out\x01croft-MARK 12\n", ""), "out", "12", true},
		{"nothing before", []string{"\x01croft-MARK", " 0", "\n"}, "", "0", true},
		{"after it", []string{"a\x01croft-MARK 0\nbackground", "more"}, "a", "0", true},
		{"like a mark", []string{"\x01croft-", "\x01croft-MARC", "\x01\x01croft-MARK 3\n"}, "\x01croft-\x01croft-MARC\x01", "3", true},
		{"none", []string{"out", "\x01crof"}, "out", "", false},
		{"a trailer without end", []string{"\x01croft-MARK" + strings.Repeat("x", 200)}, "", "", true},
		{"no line end", []string{"\x01croft-MARK 1"}, "", "1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			w := newMarked(&out, mark)
			for _, p := range c.writes {
				if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
			}
			if out.String() != c.passed || w.found() != c.found || w.trailer() != c.trailer {
				t.Errorf("passed on %q, found %v, trailer %q", out.String(), w.found(), w.trailer())
			}
		})
	}
}

// What is no mark comes through, however it is cut up, but for an end that may
// begin one.
func FuzzMarked(f *testing.F) {
	f.Add([]byte("text \x01croft-M\x01croft-MARK 5\nmore"), uint8(3))
	f.Add([]byte("\x01\x01croft-MARK"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, cut uint8) {
		var out bytes.Buffer
		w := newMarked(&out, "croft-MARK")
		for piece := range slices.Chunk(text, int(cut)+1) {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		want, _, marked := bytes.Cut(text, w.mark)
		if !marked {
			want = want[:len(want)-overlap(want, w.mark)]
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("passed on %q, want %q", out.Bytes(), want)
		}
	})
}

func FuzzReadSeen(f *testing.F) {
	f.Add("boot x\nowner urn:a urn:b\nrunning\naccount root\naccount ann\n")
	f.Add("owner\nboot\n\naccount a b")
	f.Fuzz(func(t *testing.T, text string) {
		s := readSeen(text)
		if strings.ContainsAny(s.boot+s.owner+s.manager, " \n") || s.owner != "" && s.manager == "" {
			t.Errorf("%q is read as %+v", text, s)
		}
	})
}

func TestShellQuotes(t *testing.T) {
	m := Machine{User: "ops"}
	if got, want := m.shell("a'b", []string{"", "$x `y` \\"}), `'sudo' '-n' '/bin/sh' '-c' 'a'\''b' 'croft' '' '$x `+"`y`"+` \'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What the operator's commands were doing when the manager was killed ends
// before the next one does anything.
func TestCommandsEndWithTheirManager(t *testing.T) {
	dir := t.TempDir()
	config := Config{Dir: dir, Machines: func() []Machine { return nil }}
	open := func() *Driver {
		t.Helper()
		d, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	mark, err := open().journal.beginCommand()
	if err != nil {
		t.Fatal(err)
	}
	start := func(variable string) (*exec.Cmd, func() bool) {
		t.Helper()
		// One of its processes leaves the group.
		cmd := exec.Command("/bin/sh", "-c", "setsid sleep 1000 & echo begun; sleep 1000")
		cmd.Env = append(os.Environ(), variable)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 10))
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			io.Copy(io.Discard, out) // both have closed it
			cmd.Wait()
			close(ended)
		}()
		return cmd, func() bool {
			select {
			case <-ended:
				return true
			case <-time.After(time.Minute):
				return false
			}
		}
	}
	other := mark + "X"
	t.Cleanup(func() {
		for _, m := range []string{mark, other} {
			if err := endMarked(m); err != nil {
				t.Error(err)
			}
		}
	})
	_, ended := start(markOf(mark))
	bystander, _ := start(markOf(other))
	open()
	if !ended() {
		t.Fatal("the command of a manager that was killed goes on")
	}
	if !runsWith(bystander.Process.Pid, other) {
		t.Error("another command was ended with it")
	}
	left, err := os.ReadDir(filepath.Join(dir, commandsDir))
	if err != nil || len(left) > 0 {
		t.Errorf("the journal still has %v, %v", left, err)
	}
}
