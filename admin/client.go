package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"croft/am/wire"
	"croft/urn"
)

// Client calls the server on this machine.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the server that listens on a socket. It connects
// when it is used.
func NewClient(socket string) *Client {
	return &Client{http: &http.Client{Timeout: callTime, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
	}}}
}

// Error is why the server did not do something.
type Error struct {
	Code    wire.Code
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d): %s", e.Code, int(e.Code), e.Message) }

// Slices lists the slices that are known, the oldest first.
func (c *Client) Slices(ctx context.Context) (list []Slice, err error) {
	err = c.get(ctx, "slices", urn.URN{}, &list)
	return list, err
}

// Slivers lists the slivers of a slice, or with the zero URN all.
func (c *Client) Slivers(ctx context.Context, slice urn.URN) (list []Sliver, err error) {
	err = c.get(ctx, "slivers", slice, &list)
	return list, err
}

// Events tells what happened to the slivers of a slice, the oldest first.
func (c *Client) Events(ctx context.Context, slice urn.URN) (list []Event, err error) {
	err = c.get(ctx, "events", slice, &list)
	return list, err
}

// Shutdown stops a slice and closes it to its users.
func (c *Client) Shutdown(ctx context.Context, slice urn.URN) error {
	return c.post(ctx, "shutdown", Name{URN: slice}, new(Name))
}

// Lift opens a slice again.
func (c *Client) Lift(ctx context.Context, slice urn.URN) error {
	return c.post(ctx, "lift", Name{URN: slice}, new(Name))
}

// Delete gives back a slice's slivers, or one sliver, and returns what that was.
// With force it also forgets what cannot be removed.
func (c *Client) Delete(ctx context.Context, name urn.URN, force bool) (list []Sliver, err error) {
	err = c.post(ctx, "delete", Name{URN: name, Force: force}, &list)
	return list, err
}

// Find finds the slice that is meant by a URN, or by the name of one of the
// slices that are known.
func (c *Client) Find(ctx context.Context, text string) (urn.URN, error) {
	if strings.Contains(text, ":") {
		return urn.Parse(text)
	}
	known, err := c.Slices(ctx)
	if err != nil {
		return urn.URN{}, err
	}
	var found []urn.URN
	var names []string
	for _, s := range known {
		if strings.EqualFold(s.URN.Name, text) {
			found = append(found, s.URN)
			names = append(names, s.URN.String())
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return urn.URN{}, fmt.Errorf("no slice %s is known here (croft admin slices lists them; a URN names any)", text)
	}
	return urn.URN{}, fmt.Errorf("%d slices are called %s: say which by its URN (%s)", len(found), text, strings.Join(names, ", "))
}

// FindHost finds the host that is meant by a URN, or by its name.
func (c *Client) FindHost(ctx context.Context, text string) (urn.URN, error) {
	if strings.Contains(text, ":") {
		return urn.Parse(text)
	}
	list, err := c.Hosts(ctx)
	if err != nil {
		return urn.URN{}, err
	}
	for _, h := range list {
		if strings.EqualFold(h.Name, text) {
			return h.URN, nil
		}
	}
	return urn.URN{}, fmt.Errorf("there is no host %s (croft admin hosts lists them)", text)
}

func (c *Client) get(ctx context.Context, action string, slice urn.URN, into any) error {
	query := ""
	if !slice.IsZero() {
		query = "?slice=" + url.QueryEscape(slice.String())
	}
	return c.do(ctx, http.MethodGet, action+query, nil, into)
}

func (c *Client) post(ctx context.Context, action string, name Name, into any) error {
	body, err := json.Marshal(name)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, action, bytes.NewReader(body), into)
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://croft/"+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if e, ok := err.(*url.Error); ok {
			err = e.Err // the address is not one of the network's
		}
		return fmt.Errorf("call the server: %w", err)
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		var f failure
		if err := d.Decode(&f); err != nil || f.Message == "" {
			return fmt.Errorf("the server answers %s", resp.Status)
		}
		return &Error{Code: wire.Code(f.Code), Message: f.Message}
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}
