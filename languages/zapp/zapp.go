// Package zapp is the language of Zoe: ZApps of version 2, as its document
// describes them and as Zoe 2017.03 reads them, and of version 3, as the JSON
// schema of Zoe 2018.12 has them.
//
// A service of a ZApp becomes nodes: name0, name1, … The first essential_count
// of them must be placed, the others are optional and may be taken away again.
// All are joined by one link, on which they find each other by name.
package zapp

import (
	"bytes"
	"context"

	"croft/languages"
	"croft/request"
)

// Language reads ZApps. The zero Language is ready for use.
type Language struct{}

var _ languages.Language = Language{}

// MediaType labels ZApps in the store.
const MediaType = "application/x-zapp+json"

// Link is the name of the link that joins the services of a ZApp, and of their
// interfaces to it.
const Link request.ClientID = "zapp-network"

// Versions lists versions 3 and 2.
func (Language) Versions() []languages.Version {
	return []languages.Version{{Type: "ZApp", Version: "3"}, {Type: "ZApp", Version: "2"}}
}

// MediaType labels ZApps in the store.
func (Language) MediaType() string { return MediaType }

// Detect reports whether the document is a JSON object that speaks of
// services, and not one of a language that has services of its own.
func (Language) Detect(document []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(document, []byte("\ufeff")), " \t\r\n")
	return bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(`"services"`)) &&
		!bytes.Contains(text, []byte(`"camp_version"`)) && !bytes.Contains(text, []byte(`"tosca_definitions_version"`))
}

// Compile reads a ZApp. Inputs are execution_id, execution_name, user_name and
// deployment_name, which the document's environments may name; without them
// the slice, its owner and the aggregate's authority stand for them; and
// elastic: "false" asks for the essential nodes only. Nodes that the slice has
// already are left out, so that the same ZApp again asks for the optional
// nodes that are missing.
func (Language) Compile(ctx context.Context, document []byte, scope languages.Scope) (*languages.Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	app, warnings, err := Parse(document)
	if err != nil {
		return nil, err
	}
	req, problems := compile(app, scope)
	if len(problems) > 0 {
		return nil, &languages.Error{Problems: problems}
	}
	version := languages.Version{Type: "ZApp", Version: app.version()}
	return &languages.Compiled{Version: version, Request: req, Warnings: append(warnings, app.unused...)}, nil
}
