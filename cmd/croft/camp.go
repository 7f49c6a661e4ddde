package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"croft/languages/archive"
	"croft/languages/camp"
	"croft/languages/camp/pdp"
	"croft/languages/tosca"
)

// campRequest makes what is sent of a CAMP plan's file: a plan that names files
// beside it goes as the base64 text of a package with them, another one as it
// is.
func campRequest(file string, data []byte) (string, error) {
	if archive.Is(data) || !(camp.Language{}).Detect(data) {
		return string(data), nil
	}
	dir := filepath.Dir(file)
	read := func(name string) ([]byte, error) {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > archive.MaxFile {
			return nil, fmt.Errorf("%s is no file of at most %d bytes", name, archive.MaxFile)
		}
		return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	}
	plan, err := camp.Parse(data, read)
	if err != nil {
		return string(data), nil // whoever reads it says what is wrong
	}
	var names []string
	for _, a := range plan.Artifacts {
		if a.File != "" {
			names = append(names, a.File)
		}
	}
	if len(names) == 0 {
		return string(data), nil
	}
	var out bytes.Buffer
	if err := pdp.Write(&out, pdp.Tgz, data, names, read); err != nil {
		return "", fmt.Errorf("read request: %w", err)
	}
	return tosca.Encode(out.Bytes()), nil
}
