// Package profiles has the TOSCA profiles that are built in: the testbed
// profile of this project, and one with the names of the Simple Profile.
package profiles

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Names are those that templates import the profiles by.
var names = map[string]string{
	"org.croft.testbed:1.0":           "testbed.yaml",
	"org.oasis-open.tosca.simple:2.0": "simple.yaml",
	"org.oasis-open.simple:2.0":       "simple.yaml",
	"org.oasis-open.tosca.simple:1.3": "simple.yaml",
	"tosca.simple:2.0":                "simple.yaml",
}

// Files are the built-in profiles.
type Files struct{}

// ReadFile returns the file of a profile.
func (Files) ReadFile(name string) ([]byte, error) {
	if name == "" {
		return nil, fs.ErrNotExist
	}
	return files.ReadFile(name)
}

// Profile names the file of a profile, or "".
func (Files) Profile(profile string) string { return names[profile] }
