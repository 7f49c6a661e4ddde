package radl_test

import (
	"context"
	"errors"
	"testing"

	"croft/languages"
	"croft/languages/playbook"
	"croft/languages/radl"
	"croft/request"
)

// Whatever a document says, it becomes a request or an error that says where.
func FuzzCompile(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, text := range files(f, folder) {
			f.Add(text)
		}
	}
	f.Add([]byte("network n (cidr = '10.0.0.0/31') system .a (net_interface.0.connection = 'n' and net_interface.0.ip = '10.0.0.9') deploy .a 3"))
	f.Add([]byte("system a () configure a (\n@begin\n- {tasks: []}\n- hosts: all\n  roles: [x]\n@end\n) deploy a 2"))
	earlier := []languages.Document{{MediaType: radl.MediaType, Bytes: []byte("network n () system s (net_interface.0.connection = 'n') deploy s 1")}}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scope
		s.Inputs = map[string]any{"a": 1, "b": "x"}
		s.Documents, s.Links = earlier, []request.ClientID{"n"}
		s.Existing = []languages.Existing{{Node: "s-0", Interfaces: []request.ClientID{"s-0:if0"}}}
		c, err := radl.Language{Playbooks: playbook.Installed}.Compile(context.Background(), text, s)
		var wrong *languages.Error
		switch {
		case err == nil && c.Request != nil:
		case !errors.As(err, &wrong) || len(wrong.Problems) == 0:
			t.Fatalf("error %v", err)
		default:
			for _, p := range wrong.Problems {
				if p.What == "" || p.Place.Line < 1 {
					t.Fatalf("a problem without words or place: %+v", p)
				}
			}
		}
	})
}
