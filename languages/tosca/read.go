// Package tosca reads TOSCA service templates as requests: TOSCA 2.0 and the
// Simple Profile 1.x, as a file or as an archive (CSAR).
package tosca

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"croft/languages/archive"
	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
)

// Source is a service template and what it can read.
type Source struct {
	Entry  string
	Others []string // with templates that may substitute
	Files  model.Files
}

// entryName is what a file alone is called.
const entryName = "template.yaml"

// Open takes a document: a TOSCA file, an archive, or the base64 text of an
// archive, which is how archives come as strings.
func Open(document []byte) (*Source, error) {
	if data, ok := decoded(document); ok {
		document = data
	}
	if !archive.Is(document) {
		return &Source{Entry: entryName, Files: csar.Single{Name: entryName, Data: document}}, nil
	}
	a, err := csar.Open(document)
	if err != nil {
		return nil, err
	}
	return &Source{Entry: a.Entry, Others: a.Others, Files: a}, nil
}

// OpenFile takes a file of the machine: an archive, or a TOSCA file with what
// lies around it.
func OpenFile(name string) (*Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New(name + " is a folder: want a TOSCA file or an archive")
	}
	if info.Size() > maxArchive {
		return nil, errors.New(name + " is too large")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if _, encoded := decoded(data); encoded || archive.Is(data) {
		return Open(data)
	}
	return &Source{Entry: filepath.Base(name), Files: &csar.Folder{Dir: filepath.Dir(name)}}, nil
}

const maxArchive = 128 << 20

// decoded reads the base64 text of an archive. Its first letters tell it:
// those of a zip or of a gzip.
func decoded(document []byte) ([]byte, bool) {
	text := bytes.TrimSpace(document)
	if !bytes.HasPrefix(text, []byte("UEsDB")) && !bytes.HasPrefix(text, []byte("UEsFB")) && !bytes.HasPrefix(text, []byte("H4sI")) {
		return nil, false
	}
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, string(text))
	data, err := base64.StdEncoding.DecodeString(clean)
	return data, err == nil
}

// Check reads the source and all that it imports.
func (s *Source) Check(ctx context.Context, inputs map[string]any, deploy bool) (*model.Result, error) {
	return model.Read(ctx, s.Entry, model.Options{
		Files: s.Files, Builtin: profiles.Files{}, Inputs: inputs, Others: s.Others, Deploy: deploy,
	})
}
