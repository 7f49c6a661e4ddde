package tosca

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"croft/capacity"
	"croft/languages"
	"croft/languages/languagestest"
	"croft/languages/playbook"
	"croft/request"
)

var update = flag.Bool("update", false, "write the golden files")

// packed makes an archive of a folder of testdata.
func packed(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := z.AddFS(os.DirFS(filepath.Join("testdata", dir)))
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return []byte(Encode(b.Bytes()))
}

func documents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents in %s: %v", dir, err)
	}
	made := map[string][]byte{}
	for _, f := range files {
		if made[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func TestConformance(t *testing.T) {
	good := documents(t, "good")
	good["twotier"], good["substitution"], good["playbook"] = packed(t, "twotier"), packed(t, "substitution"), packed(t, "playbook")
	languagestest.Test(t, Language{}, languagestest.Documents{
		Good: good, Bad: documents(t, "bad"),
		Unknown: map[string][]byte{"3.0": []byte("tosca_definitions_version: tosca_3_0\n")},
		Foreign: map[string][]byte{
			"rspec": []byte(`<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3"/>`),
			"radl":  []byte("network net\nsystem a (net_interface.0.connection = 'net')\ndeploy a 1\n"),
			"camp":  []byte("camp_version: CAMP 1.1\n"),
			"json":  []byte(`{"name": "app", "version": 3}`),
		},
	})
}

// TestRequests compares requests with golden files.
func TestRequests(t *testing.T) {
	all := documents(t, "good")
	all["twotier.yaml"], all["substitution.yaml"], all["playbook.yaml"] = packed(t, "twotier"), packed(t, "substitution"), packed(t, "playbook")
	for name, document := range all {
		t.Run(name, func(t *testing.T) {
			c, err := Language{}.Compile(context.Background(), document, languages.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			got := summary(c)
			file := filepath.Join("testdata", "golden", strings.TrimSuffix(name, ".yaml")+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the request differs from %s (-update writes it):\n%s", file, got)
			}
		})
	}
}

// summary writes what matters of a request, a line each.
func summary(c *languages.Compiled) string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	for _, n := range c.Request.Nodes {
		line("node %s: %s", n.ID, n.Capacity)
		if n.Most != (capacity.Amount{}) {
			line("  at most %s", n.Most)
		}
		for _, of := range [][2]string{{"site", n.Site}, {"component", n.ComponentName}, {"architecture", n.Architecture}, {"hardware", strings.Join(n.HardwareTypes, ",")}, {"image", n.Image.Name + n.Image.URL}} {
			if of[1] != "" {
				line("  %s %s", of[0], of[1])
			}
		}
		if n.Image.System != (request.System{}) {
			line("  system %+v", n.Image.System)
		}
		for _, i := range n.Interfaces {
			line("  interface %s %v", i.ID, i.Addresses)
		}
		for _, p := range n.Ports {
			line("  port %s %d/%s", p.Name, p.Number, p.Protocol)
		}
	}
	for _, l := range c.Request.Links {
		line("link %s %s", l.ID, l.Type)
		for _, e := range l.Ends {
			line("  end %s %s", e.Node, e.Interface)
		}
		for _, p := range l.Properties {
			line("  %d kbit/s, %v ms, %v %%", p.Capacity, p.LatencyMs, p.Loss)
		}
	}
	for _, g := range c.Request.Groups {
		line("group %s apart %v by %s: %v", g.Name, g.Apart, g.By, g.Nodes)
	}
	for _, st := range c.Request.Steps {
		line("step %s on %s after %v", st.Name, st.Node, st.After)
		line("  runs %q in %s", st.Run.Args, st.Run.Dir)
		for _, f := range st.Files {
			line("  file %s, %d bytes", f.Path, len(f.Content))
		}
		for _, v := range st.Env {
			value, err := json.Marshal(v.Value)
			if err != nil {
				panic(err)
			}
			line("  %s = %s", v.Name, value)
		}
		if len(st.Outputs) > 0 {
			line("  gives %v", st.Outputs)
		}
	}
	for _, w := range c.Warnings {
		line("warning %s", w)
	}
	return s.String()
}

// What stands in the way of a deployment is told with its place.
func TestRefusals(t *testing.T) {
	for name, want := range map[string]string{
		"script.yaml":     "there is no file scripts/none.sh",
		"homeless.yaml":   "node a of type Thing runs on no computer",
		"filter.yaml":     "the testbed cannot be asked for this node filter",
		"input.yaml":      "input size has no value",
		"circle.yaml":     "nodes need each other in a circle: a → b → a",
		"address.yaml":    "address 10.9.0.1 is on network l twice",
		"types.yaml":      "the file has no service template",
		"substitute.yaml": "no template of the archive substitutes node a",
		"import.yaml":     "was not read: nothing is fetched",
		"objects.yaml":    "attach a Storage.BlockStorage to a computer",
		"balancer.yaml":   "run a load balancer as software on a computer",
		"volume.yaml":     "volume_id of node v: a testbed keeps no volumes",
		"select.yaml":     "node a is to be selected, and the slice has no node a",
		"repository.yaml": "artifact https://example.org/scripts/a.sh is elsewhere",
		"workflow.yaml":   "workflow deploy would have to run",
	} {
		t.Run(name, func(t *testing.T) {
			document, err := os.ReadFile(filepath.Join("testdata", "bad", name))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Language{}.Compile(context.Background(), document, languages.Scope{})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("refused with %v, want %q and a line", err, want)
			}
		})
	}
}

// Playbooks are refused where Ansible is.
func TestPlaybooksRefused(t *testing.T) {
	_, err := Language{Playbooks: playbook.Refused}.Compile(context.Background(), packed(t, "playbook"), languages.Scope{})
	if err == nil || !strings.Contains(err.Error(), "playbook site.yml: Ansible is not run here") {
		t.Errorf("refused with %v", err)
	}
}

// Nothing outside of an archive is read, by no kind of path.
func TestOutside(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("tosca_definitions_version: tosca_2_0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"file://" + secret, "file:" + secret, secret, "../../../../../../../.." + secret} {
		for _, form := range []string{
			"imports: [ %q ]\n",
			"repositories: { r: { url: %q } }\nimports: [ { url: \"\", repository: r } ]\n",
			"repositories: { r: { url: %q } }\nimports: [ { url: ., repository: r } ]\n",
		} {
			document := "tosca_definitions_version: tosca_2_0\n" + fmt.Sprintf(form, url) + "service_template: { node_templates: {} }\n"
			if _, err := (Language{}).Compile(context.Background(), []byte(document), languages.Scope{}); err == nil {
				t.Errorf("%s is read", url)
			}
		}
		// A user's own file may lead there.
		main := filepath.Join(t.TempDir(), "main.yaml")
		if err := os.WriteFile(main, []byte("tosca_definitions_version: tosca_2_0\nimports: [ \"file://"+secret+"\" ]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := OpenFile(main)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := source.Check(context.Background(), nil, false); err != nil || !result.Valid() || len(result.Problems) > 0 {
			t.Errorf("%v, %v", err, result.Problems)
		}
	}
}

// ran is how a service went, for the test.
type ran struct{}

func (ran) Attribute(a request.Attribute) (string, bool) {
	if a.Node == "desk" {
		return "", false
	}
	return fmt.Sprintf("<%s %s %s>", a.Node, a.Interface, a.Name), true
}

func (ran) Output(o request.Output) (string, bool) {
	return fmt.Sprintf("<%s %s>", o.Step, o.Name), o.Name != "url"
}

func TestOutputs(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"twotier": {
			"answer": "<desk.client.start answer>", "summary": "salut at <web web:if0 address>",
		},
		"substitution": {"where": "<db.box db.box:if0 address>"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := languages.Scope{}
			if name == "twotier" {
				scope.Inputs = map[string]any{"greeting": "salut"}
			}
			got, err := Language{}.Outputs(context.Background(), packed(t, name), scope, ran{})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("outputs %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestPack(t *testing.T) {
	archive, count, err := Pack(context.Background(), filepath.Join("testdata", "twotier", "service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if count != 7 {
		t.Errorf("%d files are packed, want the template, 5 scripts and what one of them needs", count)
	}
	of, err := Language{}.Compile(context.Background(), []byte(Encode(archive)), languages.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Language{}.Compile(context.Background(), packed(t, "twotier"), languages.Scope{})
	if err != nil || !reflect.DeepEqual(of.Request, whole.Request) {
		t.Errorf("what was packed makes another request: %v", err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, document := range documents(f, dir) {
			f.Add(document)
		}
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		c, err := Language{}.Compile(context.Background(), document, languages.Scope{})
		if (c == nil) == (err == nil) {
			t.Fatalf("both or none of a request and an error: %v", err)
		}
	})
}
