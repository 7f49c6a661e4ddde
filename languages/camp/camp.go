// Package camp is the language of CAMP plans: the syntax of the final CAMP 1.1
// (camp.yaml), alone or in a Platform Deployment Package.
//
// CAMP leaves to platforms what artifacts, requirements and services mean. This
// platform knows, all of them in the name space org.testbed:
//
//   - services with the characteristic Node: count, image, os, distribution,
//     version, cores, memory (MiB), disk (MiB), sliver_type, hardware_type,
//     architecture, site, exclusive, links (ids of services that are links),
//     environment (a map);
//   - services with the characteristic Link: capacity (kbit/s), latency (ms),
//     loss (percent). If a plan has none, a LAN joins all of its nodes;
//   - artifacts of the types script (runs once), service (is kept running),
//     archive (is unpacked at path), file (is put at path), whose content is a
//     file of the package, base64 data, or for archives a URL that the node
//     fetches;
//   - requirements of the type HostOn, fulfilled by a service with Node, which
//     says where an artifact goes, and DependsOn, fulfilled by another artifact
//     that comes before.
//
// A requirement is fulfilled by "id:ID" of the plan, by a service written in its
// place, or by the href of a component template of the platform.
package camp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"

	"croft/languages"
	"croft/languages/archive"
	"croft/languages/camp/pdp"
)

// Language reads plans and packages. The zero Language is ready for use.
type Language struct{}

var _ languages.Language = Language{}

// MediaType labels plans and packages in the store.
const MediaType = "application/x-camp"

// Versions lists CAMP 1.1.
func (Language) Versions() []languages.Version {
	return []languages.Version{{Type: "CAMP", Version: "1.1"}}
}

// MediaType labels plans and packages in the store.
func (Language) MediaType() string { return MediaType }

// Detect reports whether the document is a plan that says its version, or a
// package with a plan, which may be written in base64.
func (Language) Detect(document []byte) bool {
	if raw, ok := unpacked(document); ok {
		a, err := archive.Open(raw)
		if err != nil {
			return false
		}
		name, err := pdp.FindPlan(a.Names())
		return err == nil && name != ""
	}
	return bytes.Contains(document, []byte("camp_version"))
}

// unpacked is the bytes of a package.
func unpacked(document []byte) ([]byte, bool) {
	if archive.Is(document) {
		return document, true
	}
	text := bytes.TrimSpace(document)
	if len(text) < 64 || bytes.ContainsAny(text[:64], " :{<[\"'-") {
		return nil, false
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(raw, text) // it skips line ends
	return raw[:n], err == nil && archive.Is(raw[:n])
}

// Compile reads a plan or a package. The accounts of the nodes are those that
// Provision is told: CAMP has no users.
func (Language) Compile(ctx context.Context, document []byte, scope languages.Scope) (*languages.Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	plan, err := Open(document)
	if err != nil {
		return nil, err
	}
	req, problems := compile(plan, scope)
	if len(problems) > 0 {
		return nil, &languages.Error{Problems: problems}
	}
	return &languages.Compiled{Version: Language{}.Versions()[0], Request: req, Warnings: plan.Warnings}, nil
}

// Open reads a plan, or a package with its plan. Errors are *languages.Error.
func Open(document []byte) (*Plan, error) {
	if raw, ok := unpacked(document); ok {
		p, err := pdp.Open(raw)
		if err != nil {
			return nil, &languages.Error{Problems: []languages.Problem{{What: err.Error()}}}
		}
		plan, err := Parse(p.Plan, p.ReadFile)
		if err != nil {
			var wrong *languages.Error
			if errors.As(err, &wrong) {
				for i := range wrong.Problems {
					at := &wrong.Problems[i].Place
					at.Path = join(p.PlanName, at.Path)
				}
			}
			return nil, err
		}
		plan.Package = p
		for _, w := range p.Warnings {
			plan.Warnings = append(plan.Warnings, languages.Problem{What: w})
		}
		return plan, nil
	}
	return Parse(document, nil)
}

func join(file, path string) string {
	if path == "" {
		return file
	}
	return file + ": " + path
}
