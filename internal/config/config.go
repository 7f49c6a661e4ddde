// Package config holds what an operator writes into croft.yaml: where the
// aggregate listens, what it keeps where, and how much it gives to whom. (Its
// name, and what it has to give, are in the inventory.) A Config that Load
// returned is complete and checked.
package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"croft/urn"
)

// Config is a server's configuration. File names in it are absolute.
type Config struct {
	// Listen is the address of the AM API, as net.Listen takes it.
	Listen string `yaml:"listen"`
	// Hostname is the name by which clients reach this machine: in GetVersion
	// and, unless Logins says otherwise, in manifests.
	Hostname string `yaml:"hostname"`

	PKI       PKI    `yaml:"pki"`
	Trusted   string `yaml:"trusted"`   // folder of the trust roots (PEM) of callers and credentials
	Inventory string `yaml:"inventory"` // file
	Database  string `yaml:"database"`  // file of the SQLite store
	State     string `yaml:"state"`     // folder that the drivers keep nodes in

	// Reconcile is how often the machines are compared with the store.
	Reconcile Duration `yaml:"reconcile"`

	Leases   Leases   `yaml:"leases"`
	Limits   Limits   `yaml:"limits"`
	Logins   Logins   `yaml:"logins"`
	Frontend Frontend `yaml:"frontend"`
	Trust    Trust    `yaml:"trust"`
	Log      Log      `yaml:"log"`

	Links     Between   `yaml:"links"` // of this machine
	Docker    Docker    `yaml:"docker"`
	Machines  Machines  `yaml:"machines"`
	Radl      Radl      `yaml:"radl"`
	Rest      Rest      `yaml:"rest"`
	Mapping   Mapping   `yaml:"mapping"`
	Simulated Simulated `yaml:"simulated"`
}

// Rest is the listener of the REST APIs and who may use them.
type Rest struct {
	// Listen is its address, as net.Listen takes it; "" for none.
	Listen string `yaml:"listen"`
	// Plain has it speak HTTP without TLS, on a loopback address.
	Plain    bool          `yaml:"plain"`
	Accounts []RestAccount `yaml:"accounts"`
	// PackageHosts are those that CAMP's packages may be fetched from, over
	// HTTPS: "packages.example.org", or with a port.
	PackageHosts []string `yaml:"package_hosts"`
	// ZoeOrder is that in which Zoe's executions start that have to wait:
	// "arrival", or "size", the small ones first.
	ZoeOrder string `yaml:"zoe_order"`
	// Lifetime is how long what these APIs have made is renewed, since its
	// beginning: their clients cannot ask for more time. With 0 it ends with
	// its first lease, after Leases.Max.
	Lifetime Duration `yaml:"lifetime"`
}

// RestAccount is somebody who may use the REST APIs.
type RestAccount struct {
	Name     string   `yaml:"name"`
	Password string   `yaml:"password"` // its bcrypt or argon2id hash
	Token    string   `yaml:"token"`    // its hash
	Member   urn.URN  `yaml:"member"`   // whom the account acts as
	Keys     []string `yaml:"keys"`     // public SSH keys, beside those that the APIs give out
}

// Radl says what is done with requests in RADL.
type Radl struct {
	// Playbooks says what becomes of Ansible recipes, which run inside of the
	// nodes: "image" runs them where the node's image has Ansible, "install"
	// installs it where it has not, "refuse" refuses such requests.
	Playbooks string `yaml:"playbooks"`
}

// PKI names the server's own certificate and key, both PEM files.
type PKI struct {
	Certificate string `yaml:"certificate"` // the chain, the server's first
	Key         string `yaml:"key"`
}

// Leases says for how long slivers are given.
type Leases struct {
	Allocated   Duration `yaml:"allocated"`   // until Provision must have come
	Provisioned Duration `yaml:"provisioned"` // if the caller names no end
	Max         Duration `yaml:"max"`         // from now, whatever the caller asks
}

// Limits bound what one caller can take of the server.
type Limits struct {
	RequestBytes    Bytes    `yaml:"request_bytes"` // of a call's body, and of what it expands to
	Nesting         int      `yaml:"nesting"`       // of XML-RPC values
	ConcurrentCalls int      `yaml:"concurrent_calls"`
	Connections     int      `yaml:"connections"`
	Handshake       Duration `yaml:"handshake"` // a TLS handshake
	Header          Duration `yaml:"header"`    // reading a request's header
	Body            Duration `yaml:"body"`      // reading a request's body
	Reply           Duration `yaml:"reply"`     // answering: the call and writing its reply
	Idle            Duration `yaml:"idle"`      // between two requests on a connection
	Shutdown        Duration `yaml:"shutdown"`  // calls may take that long to end after SIGTERM
}

// Logins says how users come to the SSH servers of nodes.
type Logins struct {
	Address  string  `yaml:"address"`  // IP address to listen on; "" for all
	Hostname string  `yaml:"hostname"` // as manifests name it; Config.Hostname by default
	Ways     Ways    `yaml:"ways"`
	Ports    Ports   `yaml:"ports"`
	Gateway  Gateway `yaml:"gateway"`
}

// Ways are the ways in to nodes that users have, and that manifests name.
type Ways string

// The ways.
const (
	Direct  Ways = "direct"  // a port for each node
	Through Ways = "gateway" // the SSH gateway (ssh -J)
	Both    Ways = "both"
)

// Gateway is the SSH gateway.
type Gateway struct {
	Port int `yaml:"port"`
	// User is the account at the gateway that manifests name; "" for that at
	// the node. The gateway itself takes any.
	User string `yaml:"user"`
}

// DefaultGatewayPort is where the SSH gateway listens.
const DefaultGatewayPort = 2222

// Ports is a range of TCP ports, both ends included.
type Ports struct {
	From int `yaml:"from"`
	To   int `yaml:"to"`
}

// Frontend is a second listener, without TLS, for a reverse proxy that has
// checked the client's certificate and hands it over in a header. It is off
// unless Network is set.
type Frontend struct {
	Network string `yaml:"network"` // "", "unix" or "tcp"
	Address string `yaml:"address"` // path of a socket, or a loopback address
	Header  string `yaml:"header"`  // the one header that the certificate comes in
}

// Enabled reports whether the listener is wanted.
func (f Frontend) Enabled() bool { return f.Network != "" }

// Log says what is logged, to standard error.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// Trust says how far the roots in the folder Config.Trusted are relied on.
type Trust struct {
	// Limits names, for files of the folder, the authorities whose names the
	// roots in them may certify; "*" is all. A root in another file is limited
	// to the authority that its own certificate names.
	Limits     map[string][]urn.Authority `yaml:"limits"`
	RefuseSHA1 bool                       `yaml:"refuse_sha1"`  // in certificates and credentials
	MinRSABits int                        `yaml:"min_rsa_bits"` // of keys in certificates
	// Policy is a file with RT0 rules that say who may do what; "" leaves it
	// at what the privileges of SFA credentials say.
	Policy string `yaml:"policy"`
}

// Mapping says which of several possible placements of a request is taken, and
// how long one is searched for.
type Mapping struct {
	Layout string       `yaml:"layout"` // pack or spread
	Costs  MappingCosts `yaml:"costs"`
	Effort float64      `yaml:"effort"` // as a multiple of what is usual
	Limit  Duration     `yaml:"limit"`  // of a search; 0 for none
}

// MappingCosts are what a placement costs, in units of Emulab's assign.
type MappingCosts struct {
	Host     float64 `yaml:"host"`     // each host that nothing was on before
	Switch   float64 `yaml:"switch"`   // each switch that links pass
	Trunk    float64 `yaml:"trunk"`    // each wire between switches that a link takes
	Scarce   float64 `yaml:"scarce"`   // a node on the largest host where the smallest would do
	Hardware float64 `yaml:"hardware"` // each kind of host that is given out whole
}

// Simulated says how the simulated driver pretends. It counts only if the
// inventory has sliver types of that driver.
type Simulated struct {
	Times  SimulatedTimes `yaml:"times"`
	Fail   SimulatedRates `yaml:"fail"`
	Seed   uint64         `yaml:"seed"`   // of what fails by chance
	Faults string         `yaml:"faults"` // file that lists what is to fail; it may be missing
}

// SimulatedTimes is how long operations on simulated nodes and links take.
type SimulatedTimes struct {
	Make    Duration `yaml:"make"`
	Start   Duration `yaml:"start"`
	Stop    Duration `yaml:"stop"`
	Users   Duration `yaml:"users"`
	Connect Duration `yaml:"connect"`
	Remove  Duration `yaml:"remove"`
}

// SimulatedRates is which share of operations fails, from 0 to 1.
type SimulatedRates struct {
	Make    float64 `yaml:"make"`
	Start   float64 `yaml:"start"`
	Stop    float64 `yaml:"stop"`
	Users   float64 `yaml:"users"`
	Connect float64 `yaml:"connect"`
	Remove  float64 `yaml:"remove"`
}

// DefaultListen is where a server listens that is told nothing else: the port
// is the one that most aggregates use.
const DefaultListen = "127.0.0.1:12369"

// defaults are the values of all fields that a file leaves out and that have a
// default of their own. croft.yaml as New writes it says the same.
func defaults() Config {
	return Config{
		Listen:    DefaultListen,
		PKI:       PKI{Certificate: "pki/server.pem", Key: "pki/server-key.pem"},
		Trusted:   "trusted",
		Inventory: "inventory.yaml",
		Database:  "state/croft.db",
		State:     "state/nodes",
		Reconcile: Duration(time.Minute),
		Leases: Leases{
			Allocated:   Duration(10 * time.Minute),
			Provisioned: Duration(24 * time.Hour),
			Max:         Duration(30 * day),
		},
		Limits: Limits{
			RequestBytes:    10 << 20,
			Nesting:         64,
			ConcurrentCalls: 64,
			Connections:     1024,
			Handshake:       Duration(10 * time.Second),
			Header:          Duration(10 * time.Second),
			Body:            Duration(time.Minute),
			Reply:           Duration(2 * time.Minute),
			Idle:            Duration(2 * time.Minute),
			Shutdown:        Duration(10 * time.Second),
		},
		Logins:   Logins{Ways: Both, Ports: Ports{From: 22000, To: 29999}, Gateway: Gateway{Port: DefaultGatewayPort}},
		Frontend: Frontend{Header: "X-Client-Cert"},
		Trust:    Trust{MinRSABits: 2048},
		Log:      Log{Level: "info", Format: "text"},
		Machines: Machines{Key: "pki/machines-key", Links: MachineLinks{Limit: Duration(2 * time.Minute)}},
		Radl:     Radl{Playbooks: "image"},
		Rest:     Rest{Lifetime: Duration(90 * day)},
		Mapping: Mapping{
			Layout: "pack", Effort: 1, Limit: Duration(10 * time.Second),
			Costs: MappingCosts{Host: 0.2, Switch: 0.5, Trunk: 0.2, Scarce: 0.04, Hardware: 0.1},
		},
		Simulated: Simulated{
			Times: SimulatedTimes{Make: Duration(2 * time.Second), Start: Duration(5 * time.Second), Stop: Duration(time.Second)},
			Seed:  1, Faults: "faults.txt",
		},
	}
}

// Load reads and checks a configuration file. File names in it are relative to
// the folder that it lies in. Errors name the file, the line and the field.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("configuration: %w (croft init makes one)", err)
		}
		return nil, fmt.Errorf("configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return Parse(path, data, dir)
}

// complete fills in what follows from other fields and makes file names
// absolute.
func (c *Config) complete(dir string) {
	if c.Hostname == "" {
		c.Hostname = Hostname(c.Listen)
	}
	if c.Logins.Hostname == "" {
		c.Logins.Hostname = c.Hostname
	}
	for _, file := range []*string{
		&c.PKI.Certificate, &c.PKI.Key, &c.Trusted, &c.Inventory, &c.Database, &c.State, &c.Simulated.Faults, &c.Trust.Policy, &c.Machines.Key,
	} {
		*file = within(dir, *file)
	}
	for i := range c.Docker.Hosts {
		h := &c.Docker.Hosts[i]
		for _, file := range []*string{&h.TLS.Authority, &h.TLS.Certificate, &h.TLS.Key, &h.SSH.Key, &h.SSH.KnownHosts} {
			*file = within(dir, *file)
		}
	}
	if c.Frontend.Network == "unix" {
		c.Frontend.Address = within(dir, c.Frontend.Address)
	}
}

func within(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// Hostname returns the name by which a listener on address is reached: the
// host of the address, or this machine's name if it listens on all.
func Hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return strings.ToLower(name)
}

// URL returns the address of the AM API version 3 for clients.
func (c *Config) URL() string {
	_, port, _ := net.SplitHostPort(c.Listen)
	return "https://" + net.JoinHostPort(c.Hostname, port) + "/am/3.0"
}
