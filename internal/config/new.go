package config

import (
	"bytes"
	"embed"
	"fmt"
	"net"
	"net/netip"
	"text/template"
)

//go:embed croft.yaml.tmpl
var files embed.FS

// New writes a configuration file for a server that listens on an address:
// every field with its default, explained.
func New(listen string) ([]byte, error) {
	t, err := template.New("croft.yaml.tmpl").
		Option("missingkey=error").
		ParseFS(files, "croft.yaml.tmpl")
	if err != nil {
		return nil, fmt.Errorf("configuration template: %w", err)
	}
	c := defaults()
	c.Listen = listen
	c.complete("")
	c.Logins.Address = loginAddress(listen)
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		return nil, fmt.Errorf("configuration template: %w", err)
	}
	if _, err := Parse("croft.yaml", out.Bytes(), "/"); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// loginAddress returns where nodes' SSH servers listen, given where the AM
// does: on the same address, or on all if that is a name.
func loginAddress(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" {
		return "127.0.0.1"
	}
	if err != nil || ip.IsUnspecified() {
		return ""
	}
	return ip.String()
}
