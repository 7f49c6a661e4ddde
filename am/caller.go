package am

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"croft/internal/openssl"
)

// Chains finds the certificates that a client has shown: its own first.
type Chains func(*http.Request) ([]*openssl.Certificate, error)

// FromTLS reads them from the TLS connection of a listener of this program.
// The server's ConnContext has to be openssl.ConnContext.
func FromTLS(r *http.Request) ([]*openssl.Certificate, error) {
	conn, ok := openssl.FromContext(r.Context())
	if !ok {
		return nil, errors.New("no TLS connection")
	}
	return conn.PeerCertificates(), nil
}

// FromHeader reads them from a header that a reverse proxy sets; nothing else
// may reach the listener. The header has to come exactly once. Its value is
// one of what proxies can write: PEM with its line ends escaped as in a URL
// (nginx, $ssl_client_escaped_cert), PEM with blanks or tabs for its line ends
// (Apache, older nginx), or DER in base64 (HAProxy, ssl_c_der).
func FromHeader(header string) Chains {
	header = http.CanonicalHeaderKey(header)
	return func(r *http.Request) ([]*openssl.Certificate, error) {
		values := r.Header[header]
		if len(values) != 1 {
			return nil, fmt.Errorf("%d headers %s: want exactly one with the client's certificate", len(values), header)
		}
		chain, err := parseHeader(values[0])
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", header, err)
		}
		return chain, nil
	}
}

// What a PEM certificate consists of.
const (
	pemHeader        = "-----BEGIN CERTIFICATE-----"
	pemFooter        = "-----END CERTIFICATE-----"
	base64Characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
)

func parseHeader(value string) ([]*openssl.Certificate, error) {
	if strings.Contains(value, "%") {
		plain, err := url.PathUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("unescaping: %w", err)
		}
		value = plain
	}
	value = strings.TrimSpace(value)
	if !strings.HasPrefix(value, pemHeader) {
		der, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, fmt.Errorf("neither PEM nor DER in base64: %w", err)
		}
		c, err := openssl.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		return []*openssl.Certificate{c}, nil
	}
	chain, err := pemLines(value)
	if err != nil {
		return nil, err
	}
	return openssl.ParsePEM(chain)
}

// pemLines gives PEM its line ends back. Between certificates may be white space
// only: a proxy that adds its header to one that the client has sent joins the
// two with a comma, and the first would be the client's.
func pemLines(value string) ([]byte, error) {
	var lines strings.Builder
	for rest := value; rest != ""; rest = strings.TrimSpace(rest) {
		body, ok := strings.CutPrefix(rest, pemHeader)
		if !ok {
			return nil, errors.New("something beside the certificate: a header of the client's own must be replaced, not added to")
		}
		if body, rest, ok = strings.Cut(body, pemFooter); !ok {
			return nil, errors.New("the certificate is cut off")
		}
		lines.WriteString(pemHeader + "\n")
		for _, line := range strings.Fields(body) {
			if strings.Trim(line, base64Characters) != "" {
				return nil, errors.New("the certificate is not in base64")
			}
			lines.WriteString(line + "\n")
		}
		lines.WriteString(pemFooter + "\n")
	}
	return []byte(lines.String()), nil
}
