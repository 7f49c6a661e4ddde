package config

import (
	"fmt"
	"net/url"
)

// Docker says where the driver docker makes containers. It counts only if the
// inventory has sliver types of that driver.
type Docker struct {
	// Pull lets images of the inventory that a Docker host lacks be pulled from
	// their registries.
	Pull bool `yaml:"pull"`
	// Hosts are the Docker hosts; none for that of this machine.
	Hosts []DockerHost `yaml:"hosts"`
}

// DockerHost is a Docker host.
type DockerHost struct {
	Name    string `yaml:"name"`
	Address string `yaml:"address"` // unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST
	// Components are hosts of the inventory, by name or URN, whose nodes are
	// made here. One Docker host may leave them out, and takes all others.
	Components []string `yaml:"components"`
	Between    `yaml:",inline"`
	TLS        DockerTLS `yaml:"tls"` // for tcp
	SSH        DockerSSH `yaml:"ssh"` // for ssh
}

// DockerTLS names the files, PEM, that secure a connection by TCP.
type DockerTLS struct {
	Authority   string `yaml:"authority"` // that signed the Docker host's certificate
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// DockerSSH names the files that secure a connection by SSH.
type DockerSSH struct {
	Key        string `yaml:"key"`
	KnownHosts string `yaml:"known_hosts"` // the Docker host's keys
}

func (v *validator) docker(d Docker) {
	names, others := map[string]bool{}, ""
	for i, h := range d.Hosts {
		field := fmt.Sprintf("docker.hosts[%d]", i)
		if h.Name == "" || names[h.Name] {
			v.fail(field+".name", "%q is not a name of its own", h.Name)
		}
		names[h.Name] = true
		if len(h.Components) == 0 {
			if others != "" {
				v.fail(field+".components", "missing: only one Docker host, %s, can take the nodes of all other hosts", others)
			}
			others = h.Name
		}
		v.between(field, h.Between)
		u, err := url.Parse(h.Address)
		if err != nil {
			v.fail(field+".address", "%q is not an address", h.Address)
			continue
		}
		if u.Scheme == "unix" && (h.Underlay != "" || len(h.Uplinks) > 0) {
			v.fail(field, "of this machine, links.underlay and links.uplinks say how links leave it")
		}
		files := []struct{ field, value string }{}
		switch u.Scheme {
		case "unix":
		case "tcp":
			files = append(files, []struct{ field, value string }{
				{"tls.authority", h.TLS.Authority}, {"tls.certificate", h.TLS.Certificate}, {"tls.key", h.TLS.Key}}...)
		case "ssh":
			files = append(files, []struct{ field, value string }{{"ssh.key", h.SSH.Key}, {"ssh.known_hosts", h.SSH.KnownHosts}}...)
		default:
			v.fail(field+".address", "%q is none of unix:///PATH, tcp://HOST:PORT, ssh://USER@HOST", h.Address)
		}
		for _, f := range files {
			if f.value == "" {
				v.fail(field+"."+f.field, "missing: whoever reaches a Docker host is its root, and must prove who they are")
			}
		}
	}
}
