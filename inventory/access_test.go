package inventory_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"croft/inventory"
)

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtC4xp7KC3eFaHVQvT3vNPvnpEEWwcs0X1X3YLKJAyL"

func TestAccess(t *testing.T) {
	const file = `
authority: example.org
sliver_types: [{name: raw-pc, driver: ssh}]
hardware_types:
  - name: d1
    sliver_types: raw-pc
    access:
      address: "{name}.ctl.example.org"
      host_keys: "` + hostKey + ` root@pc"
      power: {protocol: redfish, address: "https://{name}-bmc.example.org", user: croft, password_file: "/etc/croft/{name}.pw"}
      reimage: {command: [/usr/local/bin/reimage, "{name}"], pxe: true, limit: 60}
hosts:
  - name: pc[1-2]
    hardware_types: d1
  - name: bare
    sliver_types: raw-pc
    interfaces: [{name: eth1, mac: "0C:C4:7A:12:34:56"}]
    access: {host_keys: ["` + hostKey + `"], user: ops, port: 2222, scratch: /scratch, boot_limit: 20}
`
	s, err := inventory.Parse([]byte(file), "i.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Hosts[1].Access, (&inventory.Access{
		Address: "pc2.ctl.example.org", Port: 22, User: "root", HostKeys: []string{hostKey}, BootLimit: 10 * time.Minute,
		Reimage: &inventory.Reimage{Command: []string{"/usr/local/bin/reimage", "pc2"}, Limit: time.Minute, PXE: true, AtEnd: true},
		Power: &inventory.Power{Protocol: inventory.Redfish, Address: "https://pc2-bmc.example.org", User: "croft",
			PasswordFile: "/etc/croft/pc2.pw"},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("pc2 from its hardware type: %+v, want %+v", got, want)
	}
	if got, want := s.Hosts[2].Access, (&inventory.Access{
		Address: "bare", Port: 2222, User: "ops", HostKeys: []string{hostKey}, Scratch: []string{"/scratch"}, BootLimit: 20 * time.Second,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("bare: %+v, want %+v", got, want)
	}
	if s.Hosts[1].Properties[inventory.PlainAccounts] != "" || s.Hosts[2].Properties[inventory.PlainAccounts] != "1" {
		t.Errorf("properties %q and %q, want the second to have plain accounts", s.Hosts[1].Properties, s.Hosts[2].Properties)
	}
	if got := s.Hosts[2].Interfaces[0].MAC; got != "0c:c4:7a:12:34:56" {
		t.Errorf("hardware address %q", got)
	}
}

func TestAccessRefused(t *testing.T) {
	const key = "host_keys: " + hostKey
	for _, c := range []struct{ name, access, want string }{
		{"no host key", "{port: 22}", "an access has no host_keys"},
		{"host key that is none", "{host_keys: ssh-ed25519 AAAA}", `"ssh-ed25519 AAAA" is not a public key`},
		{"all of the machine as scratch", "{" + key + ", scratch: [/scratch, /]}", "/ cannot be scratch"},
		{"the system as scratch", "{" + key + ", scratch: /home/}", "/home/ cannot be scratch"},
		{"scratch with a way up", "{" + key + ", scratch: /scratch/..}", "/scratch/.. cannot be scratch"},
		{"network boot without power", "{" + key + ", reimage: {command: x, pxe: true}}", "booting from the network needs power"},
		{"power by another protocol", "{" + key + ", power: {protocol: snmp, address: x}}", `want ipmi or redfish, got "snmp"`},
		{"a relative password file", "{" + key + ", power: {protocol: ipmi, address: x, password_file: pw}}", "want an absolute path"},
		{"no command", "{" + key + ", reimage: {command: []}}", "an empty command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := inventory.Parse([]byte(host("access: "+c.access)), "i.yaml")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := inventory.Parse([]byte(host("interfaces:\n- {name: 'eth[0-1]', mac: '0c:c4:7a:12:34:56'}")), "i.yaml"); err == nil ||
		!strings.Contains(err.Error(), "one hardware address for several interfaces") {
		t.Errorf("a MAC for a range: %v", err)
	}
}
