package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// document puts a request into a file of the testbed.
func (b *testbed) document(name, text string) string {
	b.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	return file
}

const startupHead = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">`

// The steps of a node run in order, as its first user, who can become root; a
// step that fails stops those after it and not the node.
func TestStartup(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.slice("exp1")
	file := b.document("request.rspec", startupHead+`
<node client_id="a"><sliver_type name="namespace"/>
 <interface client_id="a:0"><ip address="10.1.1.1" netmask="255.255.255.0"/></interface>
 <services>
  <execute shell="sh" command="echo first; id -un; sudo -n id -un; echo one > $HOME/order"/>
  <execute shell="bash" command="echo two >> ~/order; cat ~/order; ping -c1 -W5 b; [[ -n $HOME ]]; echo &quot;&lt;fin&gt;&quot;"/>
 </services></node>
<node client_id="b"><sliver_type name="namespace"/>
 <interface client_id="b:0"><ip address="10.1.1.2" netmask="255.255.255.0"/></interface>
 <services>
  <execute shell="/bin/sh" command="echo broken; exit 3"/>
  <execute shell="/bin/sh" command="echo never"/>
 </services></node>
<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>
</rspec>`)
	r := b.croft("up", "exp1", file, "--wait-startup")
	if r.status == 0 {
		t.Errorf("up succeeded although a step failed:\n%s", r.out)
	}
	for _, want := range []string{"b-execute-1: failed: it ended with status 3", "b-execute-2: skipped: step b-execute-1 failed"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("up says %q, want %q", r.err, want)
		}
	}
	log := b.must("log", "exp1", "a")
	for _, want := range []string{"first\n", "\nroot\n", "one\ntwo\n", "1 received", "<fin>"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of a lacks %q:\n%s", want, log)
		}
	}
	if got := b.must("log", "exp1", "b", "--step", "b-execute-1"); got != "broken\n" {
		t.Errorf("the log of b's first step is %q", got)
	}
	status := b.must("status", "exp1")
	if n := strings.Count(status, " ready "); n != 3 || !strings.Contains(status, "start-up step b-execute-1 failed") {
		t.Errorf("status:\n%s", status)
	}
	if got := b.must("log", "exp1", "a", "--console"); !strings.Contains(got, "a") {
		t.Errorf("the console of a is %q", got)
	}
}

// Killed in the middle of a step, the server finds it again: it runs once,
// also if it ends while there is no server.
func TestKillInStartup(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.slice("exp1")
	file := b.document("request.rspec", startupHead+`
<node client_id="a"><sliver_type name="namespace"/><services>
  <execute shell="sh" command="echo run &gt;&gt; $HOME/first; while [ ! -e $HOME/go ]; do sleep 0.1; done; echo over"/>
  <execute shell="sh" command="echo run &gt;&gt; $HOME/second; cat $HOME/first $HOME/second"/>
 </services></node></rspec>`)
	b.must("up", "exp1", file)
	running := func() bool { return strings.Contains(b.must("log", "exp1", "a"), "a-execute-1  running") }
	b.await("the first step to run", running)
	b.kill()
	b.start()
	if !running() {
		t.Errorf("after kill -9:\n%s", b.must("log", "exp1", "a"))
	}
	b.kill()
	b.start()
	b.must("ssh", "exp1", "a", "--", "touch", "go")
	b.kill() // soon after, or before, the step has ended
	b.start()
	b.await("both steps to end", func() bool { return strings.Count(b.must("log", "exp1", "a"), " done ") == 2 })
	if got := b.must("log", "exp1", "a", "--step", "a-execute-1"); got != "over\n" {
		t.Errorf("the first step wrote %q", got)
	}
	if got := b.must("log", "exp1", "a", "--step", "a-execute-2"); got != "run\nrun\n" {
		t.Errorf("the steps ran so often: %q", got)
	}
}

// A failed step can be tried again.
func TestRerunStartup(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.slice("exp1")
	file := b.document("request.rspec", startupHead+`
<node client_id="a"><sliver_type name="namespace"/><services>
  <install url="file:///var/tmp/none.tgz" install_path="/local"/>
  <execute shell="sh" command="cat /local/f"/>
 </services></node></rspec>`)
	if r := b.croft("up", "exp1", file, "--wait-startup"); r.status == 0 || !strings.Contains(r.err, "No such file") {
		t.Fatalf("up ended with %d: %s", r.status, r.err)
	}
	b.must("ssh", "exp1", "a", "--", "cd /tmp && echo installed > f && tar czf /var/tmp/none.tgz f")
	b.must("action", "exp1", "croft_rerun_startup")
	b.await("both steps to end", func() bool { return strings.Count(b.must("log", "exp1", "a"), " done ") == 2 })
	if got := b.must("log", "exp1", "a", "--step", "a-execute-1"); got != "installed\n" {
		t.Errorf("the second step wrote %q", got)
	}
}
