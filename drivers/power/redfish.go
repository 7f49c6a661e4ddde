package power

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

const (
	redfishRoot = "/redfish/v1/"
	// maxAnswer bounds what is read of a service's answer.
	maxAnswer = 1 << 20
)

// viaRedfish is a controller that speaks Redfish (DMTF DSP0266), with basic
// authentication.
type viaRedfish struct {
	base           *url.URL
	user, password string
	system         string // path; "" until it was looked up
	http           *http.Client
}

func newRedfish(c Config, password string) (*viaRedfish, error) {
	text := c.Address
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("power: %q is not the URL of a Redfish service, such as https://bmc.example.org", c.Address)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	if c.AuthorityFile != "" {
		pem, err := os.ReadFile(c.AuthorityFile)
		if err != nil {
			return nil, fmt.Errorf("power: authorities: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("power: authorities: %s has no certificate (PEM)", c.AuthorityFile)
		}
	}
	return &viaRedfish{
		base: base, user: c.User, password: password, system: c.System,
		http: &http.Client{Transport: transport, Timeout: answerTime, CheckRedirect: sameHost},
	}, nil
}

// sameHost keeps the password with the service that it is for.
func sameHost(r *http.Request, via []*http.Request) error {
	if len(via) > 5 || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
		return fmt.Errorf("the service sends us to %s", r.URL)
	}
	return nil
}

// link is a reference to another resource.
type link struct {
	ID string `json:"@odata.id"`
}

// computer is what is read of a ComputerSystem.
type computer struct {
	PowerState string
	Boot       struct {
		Allowed []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
	}
	Actions struct {
		Reset struct {
			Target  string   `json:"target"`
			Allowed []string `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	}
	etag string
}

// call makes one request. The answer is read into into, if that is not nil.
func (v *viaRedfish) call(ctx context.Context, method, path, etag string, body, into any) (http.Header, error) {
	to, err := v.base.Parse(path)
	if err != nil || to.Host != v.base.Host {
		return nil, fmt.Errorf("redfish service at %s: %q is no path of the service", v.base.Host, path)
	}
	wrap := func(err error) error {
		return fmt.Errorf("redfish service at %s: %s %s: %w", v.base.Host, method, to.Path, err)
	}
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, wrap(err)
		}
		payload = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), payload)
	if err != nil {
		return nil, wrap(err)
	}
	r.SetBasicAuth(v.user, v.password)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("OData-Version", "4.0")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if etag != "" {
		r.Header.Set("If-Match", etag)
	}
	answer, err := v.http.Do(r)
	if err != nil {
		return nil, wrap(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, wrap(err)
	}
	if answer.StatusCode >= 300 {
		return nil, wrap(refusal(answer.StatusCode, text))
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, wrap(err)
		}
	}
	return answer.Header, nil
}

// refusal makes an error of an answer: Redfish services explain themselves.
func refusal(status int, body []byte) error {
	var said struct {
		Error struct {
			Message  string                     `json:"message"`
			Extended []struct{ Message string } `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	text := http.StatusText(status)
	if json.Unmarshal(body, &said) == nil {
		for _, e := range said.Error.Extended {
			if e.Message != "" {
				said.Error.Message = e.Message
				break
			}
		}
		if said.Error.Message != "" {
			text += ": " + said.Error.Message
		}
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		text += " (see user and password_file)"
	}
	return fmt.Errorf("%d %s", status, text)
}

// computer reads the system, which it looks for first if none was named.
func (v *viaRedfish) computer(ctx context.Context) (computer, error) {
	var c computer
	if v.system == "" {
		var root struct{ Systems link }
		if _, err := v.call(ctx, http.MethodGet, redfishRoot, "", nil, &root); err != nil {
			return c, err
		}
		var systems struct{ Members []link }
		if _, err := v.call(ctx, http.MethodGet, root.Systems.ID, "", nil, &systems); err != nil {
			return c, err
		}
		if len(systems.Members) != 1 {
			return c, fmt.Errorf("redfish service at %s: it has %d systems: name one (system: /redfish/v1/Systems/…)", v.base.Host, len(systems.Members))
		}
		v.system = systems.Members[0].ID
	}
	header, err := v.call(ctx, http.MethodGet, v.system, "", nil, &c)
	if err == nil {
		c.etag = header.Get("ETag")
	}
	return c, err
}

func (v *viaRedfish) On(ctx context.Context) (bool, error) {
	c, err := v.computer(ctx)
	if err != nil {
		return false, err
	}
	switch c.PowerState {
	case "On", "PoweringOff":
		return true, nil
	case "Off", "PoweringOn":
		return false, nil
	}
	return false, fmt.Errorf("redfish service at %s: the power is %q", v.base.Host, c.PowerState)
}

// resets are the ways of Redfish to do an action, the best first.
var resets = map[Action][]string{
	TurnOn:  {"On", "ForceOn"},
	TurnOff: {"ForceOff"},
	Cycle:   {"PowerCycle", "ForceRestart"},
}

func (v *viaRedfish) Do(ctx context.Context, a Action) error {
	ways, known := resets[a]
	if !known {
		return errAction(a)
	}
	c, err := v.computer(ctx)
	if err != nil {
		return err
	}
	reset := c.Actions.Reset
	if reset.Target == "" {
		return fmt.Errorf("redfish service at %s: the system cannot be reset", v.base.Host)
	}
	way := ways[0]
	if len(reset.Allowed) > 0 {
		at := slices.IndexFunc(ways, func(w string) bool { return slices.Contains(reset.Allowed, w) })
		if at < 0 {
			return fmt.Errorf("redfish service at %s: power %s: the system knows only %s: %w", v.base.Host, a, strings.Join(reset.Allowed, ", "), errors.ErrUnsupported)
		}
		way = ways[at]
	}
	_, err = v.call(ctx, http.MethodPost, reset.Target, "", map[string]string{"ResetType": way}, nil)
	return err
}

func (v *viaRedfish) BootFromNetwork(ctx context.Context) error {
	c, err := v.computer(ctx)
	if err != nil {
		return err
	}
	if len(c.Boot.Allowed) > 0 && !slices.Contains(c.Boot.Allowed, "Pxe") {
		return fmt.Errorf("redfish service at %s: network boot: the system boots only from %s: %w", v.base.Host, strings.Join(c.Boot.Allowed, ", "), errors.ErrUnsupported)
	}
	override := map[string]any{"Boot": map[string]string{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}
	_, err = v.call(ctx, http.MethodPatch, v.system, c.etag, override, nil)
	return err
}

func (v *viaRedfish) Close() error {
	v.http.CloseIdleConnections()
	return nil
}
