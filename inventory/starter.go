package inventory

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"croft/capacity"
	"croft/urn"
)

// Start is what Starter writes an inventory for.
type Start struct {
	Authority urn.Authority
	Hostname  string       // of this machine, for the comments
	Cores     int          // of this machine
	Memory    capacity.MiB // of this machine
	Disk      capacity.MiB // to give away; 0 leaves disk uncounted
	Hosts     int          // how many shares to make of the machine; 0 means 2
}

// Starter writes the inventory of one machine, declared as several hosts so
// that there is something to choose from, with comments that say how to go on.
// Parse reads what it writes.
func Starter(s Start) ([]byte, error) {
	if s.Hosts == 0 {
		s.Hosts = 2
	}
	if s.Hosts < 0 || s.Cores < 1 || s.Memory < capacity.MiB(s.Hosts) || s.Disk < 0 {
		return nil, fmt.Errorf("write an inventory of %d hosts for %d cores and %d MiB of memory: nothing to share out", s.Hosts, s.Cores, s.Memory)
	}
	if !authorityPattern.MatchString(string(s.Authority)) {
		return nil, fmt.Errorf("write an inventory for authority %q: want a name such as testbed.example.org", s.Authority)
	}
	n := capacity.MiB(s.Hosts)
	share := map[string]any{
		"Start":  s,
		"Name":   strings.Map(printable, s.Hostname),
		"All":    fmt.Sprintf("%d cores, %s of memory", s.Cores, formatSize(s.Memory)),
		"Cores":  shareOf(s.Cores, s.Hosts),
		"Memory": formatSize(s.Memory / n),
		"Type":   DefaultNamespace,
	}
	if s.Disk >= n {
		share["Disk"] = formatSize(s.Disk / n)
	}
	var out bytes.Buffer
	if err := starter.Execute(&out, share); err != nil {
		return nil, fmt.Errorf("write an inventory: %w", err)
	}
	return out.Bytes(), nil
}

// shareOf writes cores/n, rounded down to what is counted.
func shareOf(cores, n int) string {
	return formatCores(max(1, capacity.Cores(cores)*capacity.Core/capacity.Cores(n)))
}

// printable keeps a hostname from ending the comment it stands in.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

var starter = template.Must(template.New("inventory.yaml").Funcs(template.FuncMap{
	"hosts": func(n int) string {
		if n == 1 {
			return "host1"
		}
		return fmt.Sprintf("host[1-%d]", n)
	},
	"cores": formatCores,
	"size":  formatSize,
}).Parse(`# The inventory of this testbed: what nodes are placed on.
# After a change: croft inventory check. All fields: croft inventory schema.

authority: {{.Start.Authority}}

# Where the hosts stand; advertisements say so.
#sites:
#  - name: campus
#    country: BE
#    latitude: 51.05
#    longitude: 3.72

# Systems that nodes can boot: directories with a root file system (made by
# croft image build, which prints these lines). Without one, nodes see parts of
# this machine's own system.
#images:
#  - name: debian12
#    os: Debian
#    version: 12
#    architecture: x86_64
#    source: /var/lib/croft/images/debian12

# How nodes are made, and what a node takes that does not say.
sliver_types:
  - name: namespace
    cores: {{cores .Type.Cores}}
    memory: {{size .Type.Memory}}
    disk: {{size .Type.Disk}}
    shaping: true               # links have the capacity, latency and loss asked for
#    images: [debian12]          # the first is the default
#    aliases: [default-vm]       # what requests may call it besides

# This machine{{with .Name}}, {{.}},{{end}} has {{.All}}.
# It is declared as {{if eq .Start.Hosts 1}}one host{{else}}{{.Start.Hosts}} hosts, each with a share{{end}}.
hosts:
  - name: {{hosts .Start.Hosts}}
    cores: {{.Cores}}
    memory: {{.Memory}}
{{- with .Disk}}
    disk: {{.}}
{{- end}}
    exclusive: true             # one slice can have the whole of it
    shared: true                # several slices can have nodes on it
#    site: campus
#    max_slivers: 20
#    out_of_service: new memory is coming

# Addresses of links whose interfaces ask for none.
#pools:
#  addresses: 10.10.0.0/16
`))
