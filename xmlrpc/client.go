package xmlrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// defaultResponse is the largest response when the client's limits do not say:
// advertisements of large testbeds have tens of megabytes.
const defaultResponse = 128 << 20

// Client calls the methods of a server. It may be used by several goroutines;
// its fields must not be changed meanwhile.
type Client struct {
	URL        string
	HTTP       *http.Client // nil is http.DefaultClient
	Limits     Limits       // of responses; Bytes is 128 MiB by default
	Extensions Extensions   // of calls
	UserAgent  string       // "" is net/http's
}

// HTTPError is an answer that is not XML-RPC.
type HTTPError struct {
	URL    string
	Status int
	Text   string // the status, where it leads to, and the beginning of the body
}

func (e *HTTPError) Error() string { return fmt.Sprintf("%s answers %s", e.URL, e.Text) }

// Call calls a method and returns its result. A fault is returned as the error,
// of type *Fault; an answer that is no XML-RPC as an *HTTPError.
func (c *Client) Call(ctx context.Context, method string, params ...any) (any, error) {
	result, err := c.call(ctx, method, params)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	return result, nil
}

func (c *Client) call(ctx context.Context, method string, params []any) (any, error) {
	m, err := NewCall(c.Extensions, method, params...)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(m.Bytes()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "text/xml")
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp)
	}
	limits := c.Limits
	if limits.Bytes <= 0 {
		limits.Bytes = defaultResponse
	}
	doc, err := readAll(io.LimitReader(resp.Body, limits.Bytes+1), resp.ContentLength)
	if err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	if int64(len(doc)) > limits.Bytes {
		return nil, &LimitError{What: "bytes in the response", Limit: limits.Bytes}
	}
	result, err := DecodeResponse(doc, limits)
	var bad *DecodeError
	if media := strings.ToLower(resp.Header.Get("Content-Type")); errors.As(err, &bad) && !strings.Contains(media, "xml") {
		return nil, c.noXMLRPC(resp, doc) // a page of a portal or proxy
	}
	return result, err
}

// client does not follow redirections: with most of them, net/http would
// repeat the call as a GET.
func (c *Client) client() *http.Client {
	h := http.DefaultClient
	if c.HTTP != nil {
		h = c.HTTP
	}
	copied := *h
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

func (c *Client) refused(resp *http.Response) error {
	begin, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return c.noXMLRPC(resp, begin)
}

func (c *Client) noXMLRPC(resp *http.Response, body []byte) error {
	text := resp.Status
	if to := resp.Header.Get("Location"); to != "" {
		text += ", with " + to + " as the place to call"
	}
	if begin := strings.Join(strings.Fields(string(body[:min(len(body), 1<<10)])), " "); begin != "" {
		text += ": " + shorten(begin)
	}
	return &HTTPError{URL: c.URL, Status: resp.StatusCode, Text: text}
}
