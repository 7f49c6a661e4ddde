package rspec_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft/languages"
	"croft/request"
	"croft/rspec"
	"croft/slivers"
)

func services(text string) []byte {
	return []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"><node client_id="a b"><services>` +
		text + `</services></node></rspec>`)
}

// Archives come before commands, each in the order of the document.
func TestServicesBecomeSteps(t *testing.T) {
	steps := compile(t, services(`
<execute shell="sh" command="one"/>
<install url="http://files.example.org/x.tgz" install_path="/local"/>
</services><services>
<execute shell="/bin/bash" command="two"/>
<install url="/images/y.tar" install_path="~/y" file_type="tar"/>
<execute shell="sh" command=" "/>`), scope()).Request.Steps
	want := []request.Step{
		{Name: "a_b-install-1", Install: &request.Install{URL: "http://files.example.org/x.tgz", Path: "/local"}, Root: true},
		{Name: "a_b-install-2", Install: &request.Install{URL: "file:///images/y.tar", Path: "~/y"}},
		{Name: "a_b-execute-1", Run: &request.Run{Command: "one", Shell: "sh"}},
		{Name: "a_b-execute-2", Run: &request.Run{Command: "two", Shell: "/bin/bash"}},
	}
	if len(steps) != len(want) {
		t.Fatalf("%d steps: %+v", len(steps), steps)
	}
	for i, s := range steps {
		w := want[i]
		if s.Name != w.Name || s.Node != "a b" || s.Root != w.Root || s.Place.Line == 0 ||
			(s.Install == nil) != (w.Install == nil) || s.Install != nil && (s.Install.URL != w.Install.URL || s.Install.Path != w.Install.Path) ||
			(s.Run == nil) != (w.Run == nil) || s.Run != nil && (s.Run.Command != w.Run.Command || s.Run.Shell != w.Run.Shell) {
			t.Errorf("step %d is %+v, want %+v", i, s, w)
		}
	}
}

func TestServicesThatAreWrong(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"a relative path", `<install url="http://x/y.tgz" install_path="local"/>`, `install_path "local"`},
		{"no path", `<install url="http://x/y.tgz"/>`, `install_path ""`},
		{"another scheme", `<install url="ftp://x/y.tgz" install_path="/local"/>`, `install url "ftp://x/y.tgz"`},
		{"no scheme", `<install url="y.tgz" install_path="/local"/>`, `install url "y.tgz"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := rspec.Language{}.Compile(context.Background(), services(c.text), scope())
			var wrong *languages.Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) || wrong.Problems[0].Place.Line == 0 {
				t.Errorf("%v, want an error with %q and its line", err, c.says)
			}
		})
	}
}

// Published ports are told in an element of Croft's own, which schemas allow.
func TestManifestPorts(t *testing.T) {
	document := requestFile(t, "start-up.rspec")
	in := rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: place(compile(t, document, scope()).Request, 1), Now: noon}
	in.Slivers = provision(in.Slivers)
	k := slices.IndexFunc(in.Slivers, func(s slivers.Sliver) bool { return s.Node != nil })
	in.Slivers[k].Node.Ports = []slivers.Port{
		{Port: request.Port{Name: "web <&", Number: 80, Protocol: "tcp", URL: "http://{host}:{port}/"}, Public: slivers.Login{Host: "2001:db8::1", Port: 22007}},
		{Port: request.Port{Name: "dns", Number: 53, Protocol: "udp"}},
	}
	m := manifest(t, in)
	const want = `<croft:port xmlns:croft="urn:x-croft:rspec:1" name="web &lt;&amp;" number="80" public_host="2001:db8::1" public_port="22007" url="http://[2001:db8::1]:22007/"/>`
	if bytes.Count(m, []byte("croft:port ")) != 1 || !bytes.Contains(m, []byte(want)) {
		t.Errorf("not once %s in\n%s", want, m)
	}
	asked := bytes.Replace(m, []byte(`type="manifest"`), []byte(`type="request"`), 1)
	in.Documents = []slivers.Document{original(1, asked)}
	if twice := manifest(t, in); bytes.Count(twice, []byte("croft:port ")) != 1 {
		t.Errorf("a manifest of a manifest:\n%s", twice)
	}
	dir := schemaTool(t)
	for name, why := range violations(t, filepath.Join(dir, "all-manifest.xsd"), map[string][]byte{"ports": m}) {
		t.Errorf("%s: not valid: %s\n%s", name, why, m)
	}
}
