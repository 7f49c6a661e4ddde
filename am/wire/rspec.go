package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"croft/aggregate"
	"croft/languages"
	"croft/rspec"
	"croft/xmlrpc"
)

// VersionStructs lists document formats as GetVersion does.
func VersionStructs(versions []languages.Version) []any {
	list := make([]any, len(versions))
	for i, v := range versions {
		extensions := make([]any, len(v.Extensions))
		for j, e := range v.Extensions {
			extensions[j] = e
		}
		list[i] = map[string]any{
			"type": v.Type, "version": v.Version, "schema": v.Schema, "namespace": v.Namespace, "extensions": extensions,
		}
	}
	return list
}

// Document is a manifest as a reply carries it: compressed it is a string too,
// base64 of zlib.
func Document(text []byte, compressed bool) (string, error) {
	if !compressed {
		return string(text), nil
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return "", fmt.Errorf("compressing an RSpec: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compressing an RSpec: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// Advertisement is an advertisement as a reply carries it: piece by piece, as
// it can be large.
func Advertisement(ad *rspec.Ad, compressed bool) xmlrpc.Text {
	if compressed {
		return xmlrpc.Text(slices.Values(ad.Compressed()))
	}
	return xmlrpc.Text(ad.Pieces())
}

// Warnings writes what an author should know into the output of a reply.
func Warnings(list []languages.Problem) string {
	lines := make([]string, len(list))
	for i, p := range list {
		lines[i] = "warning: " + p.String()
	}
	return strings.Join(lines, "\n")
}

// SSHGateway is the struct by which GetVersion tells of the SSH gateway, with
// its host key, so that clients need not trust the first one they see; nil if
// there is none.
func SSHGateway(g aggregate.Gateway) map[string]any {
	if g.Login.Host == "" {
		return nil
	}
	return map[string]any{"hostname": g.Login.Host, "port": g.Login.Port, "host_key": g.HostKey}
}
