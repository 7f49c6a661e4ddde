package im

import (
	"strings"
	"testing"
)

// Only what is for this service is read of a header, whatever stands beside
// it.
func TestServiceLine(t *testing.T) {
	for _, test := range []struct{ name, header, user, password, token string }{
		{"one line", `type = InfrastructureManager; username = u; password = p`, "u", "p", ""},
		{"among others", `id = one;type = OpenNebula;username = x;password = y;\ntype = InfrastructureManager;username = u;password = p;\ntype = VMRC;username = v;password = w;\n`, "u", "p", ""},
		{"line breaks in values", `type = GCE;password = -----BEGIN\\nKEY\\n-----END;\ntype = InfrastructureManager;username = u;password = a\\nb;\n`, "u", "a\nb", ""},
		{"token", `type = InfrastructureManager; token = t`, "", "", "t"},
		{"semicolon in quotes", `type = InfrastructureManager; username = u; password = 'a;b = c'`, "u", "a;b = c", ""},
		{"equals", `type = InfrastructureManager; username = u; password = a=b=`, "u", "a=b=", ""},
		{"a quotation mark within", `type = InfrastructureManager; username = u; password = it's; x = y`, "u", "it's", ""},
		{"the first counts", `type = InfrastructureManager; username = a; password = b\ntype = InfrastructureManager; username = c; password = d`, "a", "b", ""},
		{"JSON", `[{"type": "OpenNebula", "username": "x", "port": 1}, {"type": "InfrastructureManager", "username": "u", "password": "p"}]`, "u", "p", ""},
		{"JSON of other things", `[1, {"type": 5}]`, "", "", ""},
		{"nothing of it", `id = one; type = OpenNebula; username = x; password = y`, "", "", ""},
		{"nothing", ``, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			user, password, token := serviceLine(test.header)
			if user != test.user || password != test.password || token != test.token {
				t.Errorf("%q %q %q", user, password, token)
			}
		})
	}
}

func FuzzServiceLine(f *testing.F) {
	f.Add(`id = one;type = OpenNebula;username = x;password = other;\ntype = InfrastructureManager;username = u;password = p;\n`)
	f.Add(`[{"type": "InfrastructureManager", "token": "t"}]`)
	f.Fuzz(func(t *testing.T, header string) {
		user, password, token := serviceLine(header)
		if user+password+token != "" && !strings.Contains(header, serviceType) && !strings.HasPrefix(header, "[") {
			t.Fatalf("%q gives %q %q %q", header, user, password, token)
		}
	})
}
