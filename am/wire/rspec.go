package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"strings"

	"croft/languages"
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

// Document is an RSpec as a reply carries it: compressed it is a string too,
// base64 of zlib.
func Document(rspec []byte, compressed bool) (string, error) {
	if !compressed {
		return string(rspec), nil
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(rspec); err != nil {
		return "", fmt.Errorf("compressing an RSpec: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compressing an RSpec: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// Warnings writes what an author should know into the output of a reply.
func Warnings(list []languages.Problem) string {
	lines := make([]string, len(list))
	for i, p := range list {
		lines[i] = "warning: " + p.String()
	}
	return strings.Join(lines, "\n")
}
