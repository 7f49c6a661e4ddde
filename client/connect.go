package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"croft/internal/openssl"
	"croft/xmlrpc"
)

// Options say which aggregate to call, and as whom.
type Options struct {
	URL      string    // https://…
	Identity *Identity // who calls
	// Roots are PEM certificates that the aggregate's must come from.
	Roots []byte
	// Insecure accepts any certificate of the aggregate.
	Insecure bool
	// Timeout bounds each call; zero stands for two minutes.
	Timeout time.Duration
}

// maxReply bounds a reply: the advertisement of a large testbed has some
// 20 MB.
const maxReply = 256 << 20

// New returns a client of an aggregate. It connects when it is first used.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("aggregate: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("aggregate %q: want a URL such as https://am.example.org:12369/am/3.0", o.URL)
	}
	if o.Identity == nil {
		return nil, errors.New("aggregate: nobody to call as")
	}
	tls := &openssl.ClientConfig{
		CertificatePEM:     o.Identity.CertificatePEM,
		KeyPEM:             o.Identity.KeyPEM,
		InsecureSkipVerify: o.Insecure,
	}
	if !o.Insecure {
		if tls.Roots, err = openssl.ParsePEM(o.Roots); err != nil {
			return nil, fmt.Errorf("aggregate %s: trust roots: %w", o.URL, err)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	return &Client{
		url:     o.URL,
		timeout: o.Timeout,
		rpc: &xmlrpc.Client{
			URL:       o.URL,
			UserAgent: "croft",
			Limits:    xmlrpc.Limits{Bytes: maxReply},
			HTTP:      &http.Client{Transport: &http.Transport{DialTLSContext: tls.DialTLSContext}},
		},
	}, nil
}

// SystemRoots returns the PEM certificates of the authorities that this
// machine trusts, as far as they are where Linux distributions keep them.
func SystemRoots() []byte {
	files := []string{
		os.Getenv("SSL_CERT_FILE"),
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			return data
		}
	}
	return nil
}
