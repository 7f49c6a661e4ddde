package client

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"strings"

	"croft/urn"
)

// Manifest is what a client needs to know of a manifest: the nodes, how to log
// in to them, and their addresses.
type Manifest struct {
	Nodes []ManifestNode
}

// ManifestNode is one node of a manifest.
type ManifestNode struct {
	ClientID   string
	Sliver     string // sliver_id
	Component  string // component_id
	Host       string // host/@name
	Logins     []Login
	Proxies    []Proxy // through which some of the logins go
	Users      []NodeUser
	Interfaces []ManifestInterface
}

// NodeUser says which account a user has on a node (GENI extension user/1).
type NodeUser struct {
	URN   string
	Login string
}

// Login is one way to log in to a node.
type Login struct {
	Authentication string // "ssh-keys"
	Host           string
	Port           string // "22" if the manifest names none
	User           string
}

// Proxy says that a login is reached through an SSH gateway (jFed's extension
// proxy/1.0).
type Proxy struct {
	At  Login // at the gateway
	For Login // at the node
}

// ManifestInterface is an interface of a node.
type ManifestInterface struct {
	ClientID  string
	MAC       string
	Addresses []string
}

// xmlManifest is the part of a manifest that is read. Namespaces are left out:
// aggregates differ in them, and in nothing else that matters here.
type xmlManifest struct {
	XMLName xml.Name
	Nodes   []struct {
		ClientID  string `xml:"client_id,attr"`
		Sliver    string `xml:"sliver_id,attr"`
		Component string `xml:"component_id,attr"`
		Host      struct {
			Name string `xml:"name,attr"`
		} `xml:"host"`
		Services []struct {
			Logins []struct {
				Authentication string `xml:"authentication,attr"`
				Host           string `xml:"hostname,attr"`
				Port           string `xml:"port,attr"`
				User           string `xml:"username,attr"`
			} `xml:"login"`
			Proxies []struct {
				At  string `xml:"proxy,attr"`
				For string `xml:"for,attr"`
			} `xml:"http://jfed.iminds.be/proxy/1.0 proxy"`
			Users []struct {
				Login string `xml:"login,attr"`
				URN   string `xml:"user_urn,attr"`
			} `xml:"services_user"`
		} `xml:"services"`
		Interfaces []struct {
			ClientID  string `xml:"client_id,attr"`
			MAC       string `xml:"mac_address,attr"`
			Addresses []struct {
				Address string `xml:"address,attr"`
			} `xml:"ip"`
		} `xml:"interface"`
	} `xml:"node"`
}

// ReadManifest reads a manifest.
func ReadManifest(document string) (*Manifest, error) {
	var x xmlManifest
	if err := decodeXML(document, &x); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if x.XMLName.Local != "rspec" {
		return nil, fmt.Errorf("read manifest: root element is %q, not rspec", x.XMLName.Local)
	}
	m := new(Manifest)
	for _, n := range x.Nodes {
		node := ManifestNode{ClientID: n.ClientID, Sliver: n.Sliver, Component: n.Component, Host: n.Host.Name}
		for _, s := range n.Services {
			for _, l := range s.Logins {
				if l.Port == "" {
					l.Port = "22"
				}
				node.Logins = append(node.Logins, Login{l.Authentication, l.Host, l.Port, l.User})
			}
			for _, p := range s.Proxies {
				node.Proxies = append(node.Proxies, Proxy{loginAt(p.At), loginAt(p.For)})
			}
			for _, u := range s.Users {
				node.Users = append(node.Users, NodeUser{u.URN, u.Login})
			}
		}
		for _, i := range n.Interfaces {
			face := ManifestInterface{ClientID: i.ClientID, MAC: i.MAC}
			for _, a := range i.Addresses {
				face.Addresses = append(face.Addresses, a.Address)
			}
			node.Interfaces = append(node.Interfaces, face)
		}
		m.Nodes = append(m.Nodes, node)
	}
	return m, nil
}

// Node returns the node of that client_id.
func (m *Manifest) Node(clientID string) (*ManifestNode, bool) {
	for i := range m.Nodes {
		if m.Nodes[i].ClientID == clientID {
			return &m.Nodes[i], true
		}
	}
	return nil, false
}

// loginAt reads USER@HOST:PORT.
func loginAt(text string) Login {
	l := Login{Authentication: "ssh-keys", Port: "22"}
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		l.User, text = text[:i], text[i+1:]
	}
	l.Host = text
	if host, port, err := net.SplitHostPort(text); err == nil {
		l.Host, l.Port = host, port
	}
	return l
}

// same reports whether two logins are the same account at the same place.
func (l Login) same(other Login) bool {
	return strings.EqualFold(l.Host, other.Host) && l.Port == other.Port && l.User == other.User
}

// LoginOf returns how a user logs in: by the account that the manifest says is
// the user's, or one named after the user, or else the first; directly where
// that is possible. Logins at gateways are not logins to the node.
func (n *ManifestNode) LoginOf(user urn.URN) (Login, bool) {
	account := user.Name
	for _, u := range n.Users {
		if name, err := urn.Parse(u.URN); err == nil && name.Equal(user) {
			account = u.Login
		}
	}
	best, quality := Login{}, 0
	for _, l := range n.Logins {
		if l.Authentication != "" && l.Authentication != "ssh-keys" || n.isGateway(l) {
			continue
		}
		q := 1
		if strings.EqualFold(l.User, account) {
			q += 2
		}
		if _, through := n.ProxyOf(l); !through {
			q++
		}
		if q > quality {
			best, quality = l, q
		}
	}
	return best, quality > 0
}

// ProxyOf returns the login at the gateway through which a login goes.
func (n *ManifestNode) ProxyOf(l Login) (Login, bool) {
	for _, p := range n.Proxies {
		if p.For.same(l) {
			return p.At, true
		}
	}
	return Login{}, false
}

func (n *ManifestNode) isGateway(l Login) bool {
	for _, p := range n.Proxies {
		if p.At.same(l) {
			return true
		}
	}
	return false
}

// ThroughGateway is the node with only those logins that go through a gateway.
func (n *ManifestNode) ThroughGateway() *ManifestNode {
	behind := *n
	behind.Logins = nil
	for _, l := range n.Logins {
		if _, through := n.ProxyOf(l); through {
			behind.Logins = append(behind.Logins, l)
		}
	}
	return &behind
}

// decodeXML reads one XML document. Nothing outside of it is ever read:
// encoding/xml knows no external entities.
func decodeXML(document string, into any) error {
	d := xml.NewDecoder(strings.NewReader(document))
	if err := d.Decode(into); err != nil {
		if err == io.EOF {
			return fmt.Errorf("no element in it")
		}
		return err
	}
	return nil
}
