package im

import (
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/aggregate"
	"croft/capacity"
	"croft/languages/radl"
	"croft/rest"
	"croft/slivers"
)

// end is when new machines end: as late as the site lets them, as the API has
// no way to ask for more time.
func (c *call) end() time.Time { return c.Clock().Add(c.Service.Leases.ProvisionedMax) }

func (c *call) machineURL(x *infrastructure, m *machineRecord) string {
	return fmt.Sprintf("%s/vms/%d", c.url(x.ID), m.Number)
}

// machines lists the machines of an infrastructure.
func (c *call) machines() error {
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	list := []string{}
	for i := range x.Machines {
		if x.state(&x.Machines[i]) != off {
			list = append(list, c.machineURL(x, &x.Machines[i]))
		}
	}
	c.uris(list, uriList)
	return nil
}

// key is the private key that opens the machines of an infrastructure for who
// gives the caller's password or token. It is made anew for every call.
func (c *call) key(x *infrastructure) (ed25519.PrivateKey, error) {
	seed, err := c.id.Derive("im login "+x.slice.Canonical().String(), ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("making the login key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// publicKey is the other half of key, as a line for authorized_keys.
func (c *call) publicKey(x *infrastructure) (string, error) {
	key, err := c.key(x)
	if err != nil {
		return "", err
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("making the login key: %w", err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), nil
}

// document is what is known of a machine, as RADL.
func (c *call) machineDocument(x *infrastructure, m *machineRecord) (*radl.Document, error) {
	facts := radl.Facts{Node: m.Node, Addresses: map[int]string{}}
	add := func(name, text string) {
		if text != "" {
			facts.Features = append(facts.Features, radl.TextFeature(name, text))
		}
	}
	add("state", string(x.state(m)))
	o, ok := x.live[m.Sliver.Canonical()]
	if !ok {
		return x.merged().Machine(facts), nil
	}
	v := o.Sliver
	add("instance_id", v.URN.String())
	add("instance_name", string(v.ClientID))
	add("provider.type", "Croft")
	add("provider.host", v.Node.HostName)
	add("virtual_system_type", string(v.Node.SliverType))
	facts.Features = append(facts.Features, radl.WholeFeature("launch_time", v.Created.Unix()))
	if a := v.Node.Capacity; a.Cores > 0 {
		facts.Features = append(facts.Features, radl.NumberFeature("cpu.count", float64(a.Cores)/float64(capacity.Core)))
	}
	if a := v.Node.Capacity; a.Memory > 0 {
		facts.Features = append(facts.Features, radl.WholeFeature("memory.size", int64(a.Memory)<<20))
	}
	if !v.Node.Image.IsZero() {
		add("disk.0.image.url", v.Node.Image.String())
	}
	add("croft.expires", v.Expires.UTC().Format(time.RFC3339))
	for i, f := range v.Node.Interfaces {
		var n int
		if _, err := fmt.Sscanf(string(f.ID), string(v.ClientID)+":if%d", &n); err != nil || x.derived() {
			n = i
		}
		if len(f.Addresses) > 0 {
			facts.Addresses[n] = f.Addresses[0].Addr().String()
		}
	}
	if v.Allocation == slivers.Provisioned {
		facts.LoginHost, facts.LoginPort = v.Node.Login.Host, v.Node.Login.Port
		for _, p := range v.Node.Ports {
			if p.Public.Port != 0 {
				facts.Ports = append(facts.Ports, radl.Reached{Public: p.Public.Port, Local: p.Number, Protocol: p.Protocol})
			}
		}
		if err := c.credentials(x, &v, &facts); err != nil {
			return nil, err
		}
	}
	return x.merged().Machine(facts), nil
}

// credentials tells how the caller logs in to a machine: with the derived key,
// if the machine has it.
func (c *call) credentials(x *infrastructure, v *slivers.Sliver, facts *radl.Facts) error {
	public, err := c.publicKey(x)
	if err != nil {
		return err
	}
	user, opens := "", false
	for _, u := range v.Node.Users {
		has := slices.Contains(u.Keys, public)
		// The account that the document asks for goes before the member's.
		if u.Login != "" && (has && !opens || has == opens && (user == "" || !u.URN.Equal(c.id.Member))) {
			user, opens = u.Login, has
		}
	}
	if user == "" {
		return nil
	}
	facts.Features = append(facts.Features, radl.TextFeature("disk.0.os.credentials.username", user))
	if !opens {
		return nil
	}
	key, err := c.key(x)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return fmt.Errorf("writing the login key: %w", err)
	}
	facts.Features = append(facts.Features, radl.TextFeature("disk.0.os.credentials.private_key", string(pem.EncodeToMemory(block))))
	return nil
}

// openMachine reads the infrastructure and the one machine that a call names.
func (c *call) openMachine() (*infrastructure, *machineRecord, func(), error) {
	x, unlock, err := c.open()
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := x.find(c.r.PathValue("machines"))
	if err != nil {
		unlock()
		return nil, nil, nil, err
	}
	return x, m, unlock, nil
}

func (c *call) machine() error {
	x, m, unlock, err := c.openMachine()
	if err != nil {
		return err
	}
	defer unlock()
	d, err := c.machineDocument(x, m)
	if err != nil {
		return err
	}
	return c.writeDocument(d)
}

func (c *call) writeDocument(d *radl.Document) error {
	if wants(c.r, plain) == asJSON {
		text, err := d.JSON()
		if err != nil {
			return err
		}
		c.reply(c.w, c.r, asJSON, "radl", json.RawMessage(text))
		return nil
	}
	text, err := d.Text()
	if err != nil {
		return fmt.Errorf("writing the RADL of a machine: %w", err)
	}
	c.reply(c.w, c.r, plain, "radl", string(text))
	return nil
}

func (c *call) machineProperty() error {
	x, m, unlock, err := c.openMachine()
	if err != nil {
		return err
	}
	defer unlock()
	property := c.r.PathValue("property")
	switch property {
	case "contmsg":
		text, err := c.contextMessage(x, m)
		if err != nil {
			return err
		}
		c.reply(c.w, c.r, plain, property, text)
		return nil
	}
	d, err := c.machineDocument(x, m)
	if err != nil {
		return err
	}
	value, ok := d.Value(property)
	if !ok {
		return rest.Refuse(http.StatusNotFound, "VM %d of infrastructure %s has no %.80q", m.Number, x.ID, property)
	}
	c.reply(c.w, c.r, plain, property, value)
	return nil
}

// alter would change what a machine has. A node is what it is: only what is so
// already can be asked for.
func (c *call) alter() error {
	text, err := rest.Body(c.r)
	if err != nil {
		return err
	}
	x, m, unlock, err := c.openMachine()
	if err != nil {
		return err
	}
	defer unlock()
	wanted, _, err := radl.Parse(text, nil)
	if err != nil {
		return &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	is, err := c.machineDocument(x, m)
	if err != nil {
		return err
	}
	if what := wanted.Unlike(is); what != "" {
		return rest.Refuse(http.StatusConflict, "VM %d cannot be changed (%s): add another one that is as you wish, and remove this one", m.Number, what)
	}
	return c.writeDocument(is)
}

// removes the machines that a call names, numbers with commas between them.
func (c *call) remove() error {
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	var gone []*machineRecord
	for _, number := range strings.Split(c.r.PathValue("machines"), ",") {
		m, err := x.find(strings.TrimSpace(number))
		if err != nil {
			return err
		}
		if !slices.Contains(gone, m) {
			gone = append(gone, m)
		}
	}
	if _, err := c.Service.Delete(c.ctx, c.principal, x.target(gone), true); err != nil {
		return err
	}
	numbers := map[int]bool{}
	for _, m := range gone {
		numbers[m.Number] = true
	}
	x.Machines = slices.DeleteFunc(x.Machines, func(m machineRecord) bool { return numbers[m.Number] })
	if err := c.Records.Put(c.owner, x.ID, &x.record); err != nil {
		return err
	}
	return c.done()
}

func (c *call) operateMachine() error {
	x, m, unlock, err := c.openMachine()
	if err != nil {
		return err
	}
	defer unlock()
	action, ok := map[string]aggregate.Action{"start": aggregate.Start, "stop": aggregate.Stop, "reboot": aggregate.Restart}[c.r.PathValue("operation")]
	if !ok {
		return rest.Refuse(http.StatusNotFound, "there is no operation %.40q: there are start, stop and reboot", c.r.PathValue("operation"))
	}
	if _, err := c.Service.Act(c.ctx, c.principal, x.target([]*machineRecord{m}), action, aggregate.ActOptions{}); err != nil {
		return err
	}
	return c.done()
}

// operate starts, stops or configures all machines of an infrastructure.
func (c *call) operate() error {
	operation := c.r.PathValue("operation")
	body, err := rest.Body(c.r)
	if err != nil {
		return err
	}
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	var all []*machineRecord
	for i := range x.Machines {
		if x.state(&x.Machines[i]) != off {
			all = append(all, &x.Machines[i])
		}
	}
	switch operation {
	case "start", "stop":
		action := map[string]aggregate.Action{"start": aggregate.Start, "stop": aggregate.Stop}[operation]
		if len(all) > 0 {
			_, err = c.Service.Act(c.ctx, c.principal, x.target(all), action, aggregate.ActOptions{})
		}
	case "reconfigure":
		err = c.reconfigure(x, all, body)
	default:
		err = rest.Refuse(http.StatusNotFound, "there is no operation %.40q: there are start, stop and reconfigure", operation)
	}
	if err != nil {
		return err
	}
	return c.done()
}

// reconfigure runs the start-up of machines anew, and sees to it that the
// caller's key opens them.
func (c *call) reconfigure(x *infrastructure, machines []*machineRecord, body []byte) error {
	if len(strings.TrimSpace(string(body))) > 0 {
		wanted, _, err := radl.Parse(body, nil)
		if err != nil {
			return &rest.Error{Status: http.StatusBadRequest, Err: err}
		}
		if what := wanted.Unlike(x.merged()); what != "" {
			return rest.Refuse(http.StatusConflict, "machines keep the recipes that they were made with (%s): add machines with the new ones", what)
		}
	}
	if list := c.r.URL.Query().Get("vm_list"); list != "" {
		machines = nil
		for _, number := range strings.Split(list, ",") {
			m, err := x.find(strings.TrimSpace(number))
			if err != nil {
				return err
			}
			machines = append(machines, m)
		}
	}
	if len(machines) == 0 {
		return nil
	}
	key, err := c.publicKey(x)
	if err != nil {
		return err
	}
	if _, err := c.Service.Act(c.ctx, c.principal, x.target(machines), aggregate.UpdateUsers, aggregate.ActOptions{Users: c.users(key)}); err != nil {
		return err
	}
	return c.Service.Rerun(c.ctx, c.principal, x.target(machines))
}
