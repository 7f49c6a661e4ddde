// Package camp is the REST face of CAMP 1.1 (csd02): a platform on which
// packages are deployed as assembly templates and run as assemblies. An
// assembly is a slice of the caller's member; what it is like is what its
// slivers are like.
//
// Slices that the member has made otherwise are assemblies, too, with a component
// for each node, of a template that nothing else is made of.
//
// Beyond csd02, packages are uploaded by POST to /packages or to the platform
// itself (tar, tar.gz, zip, or a plan alone in YAML), kept under URIs of the
// platform's own, and templates and assemblies can be had as packages. All
// further names are in the name space org.testbed.
package camp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"croft/aggregate"
	"croft/credentials"
	"croft/languages"
	"croft/rest"
	"croft/urn"
)

// Config is what a Face is made of.
type Config struct {
	Service  *aggregate.Service
	Accounts *rest.Accounts
	Records  *rest.Records
	// Path is where the face is, such as "/camp"; Base is its address as
	// clients have it, "" to take it from their requests.
	Path, Base string
	Version    string   // of the program
	Hosts      []string // that packages may be fetched from; none is usual
	Client     *http.Client
	Clock      func() time.Time
	Random     io.Reader
	Log        *slog.Logger
}

// Face serves CAMP.
type Face struct {
	Config
	types   map[string]*resourceType
	created time.Time // of the platform
	locks   rest.Locks
}

const faceName = "camp"

// New makes the face.
func New(c Config) (*Face, error) {
	f := &Face{Config: c, types: map[string]*resourceType{}}
	for _, t := range resourceTypes() {
		f.types[t.name] = &t
	}
	var site struct{ Created time.Time }
	err := c.Records.Get("site", "platform", &site)
	if errors.Is(err, rest.ErrNoRecord) {
		site.Created = c.Clock().UTC().Truncate(time.Second)
		err = c.Records.Put("site", "platform", &site)
	}
	if err != nil {
		return nil, fmt.Errorf("CAMP: %w", err)
	}
	f.created = site.Created
	return f, nil
}

// call is a request of somebody who is known.
type call struct {
	*Face
	ctx       context.Context
	w         http.ResponseWriter
	r         *http.Request
	id        *rest.Identity
	authority urn.Authority
	owner     string
	principal *credentials.Principal
}

// ServeHTTP answers a request below Path.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	if path == "api/versions" { // the one resource that anybody may see
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			f.fail(w, r, notAllowed(w, "GET"))
			return
		}
		f.json(w, r, http.StatusOK, []map[string]string{{"version": "1.1", "href": f.url(r, "platform"), "targetName": "v1.1"}})
		return
	}
	if path == "openapi.json" && r.Method == http.MethodGet {
		text, err := OpenAPI()
		if err != nil {
			f.fail(w, r, err)
			return
		}
		rest.ServeOpenAPI(w, text)
		return
	}
	id, err := f.Accounts.FromHeader(r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	site := f.Service.Manager().Authority.Top()
	c := &call{Face: f, ctx: r.Context(), w: w, r: r, id: id, authority: id.Authority(site, faceName), owner: id.Owner(site)}
	c.principal = id.Principal(site)
	unlock, err := f.locks.Lock(r.Context(), c.owner)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	defer unlock()
	if path == "" {
		path = "platform"
	}
	if err := c.serve(path); err != nil {
		f.fail(w, r, err)
	}
}

// serve does what a method does to a path.
func (c *call) serve(path string) error {
	part := strings.Split(path, "/")
	method := c.r.Method
	switch {
	case method == http.MethodPost && path == "platform":
		return c.register()
	case method == http.MethodPost && path == "packages":
		return c.upload()
	case len(part) == 3 && part[2] == "pdp" && (part[0] == "assemblyTemplates" || part[0] == "assemblies"):
		if method != http.MethodGet && method != http.MethodHead {
			return notAllowed(c.w, "GET")
		}
		return c.export(part[0], part[1])
	case len(part) == 3 && part[0] == "packages" && part[2] == "content" && (method == http.MethodGet || method == http.MethodHead):
		return c.download(part[1])
	}
	r, err := c.find(path)
	if err != nil {
		return err
	}
	if allowed := r.methods(); !contains(allowed, method) {
		return notAllowed(c.w, allowed...)
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		return c.get(r)
	case http.MethodPut:
		return c.put(r)
	case http.MethodPatch:
		return c.patch(r)
	case http.MethodDelete:
		return c.delete(r)
	default:
		return c.post(r)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func notAllowed(w http.ResponseWriter, methods ...string) error {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return rest.Refuse(http.StatusMethodNotAllowed, "the resource has only the methods %s now", strings.Join(methods, ", "))
}

// url is the address of a resource.
func (f *Face) url(r *http.Request, path string) string {
	base := f.Base
	if base == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + r.Host + f.Path
	}
	return base + "/" + path
}

// json answers with a document and its entity tag.
func (f *Face) json(w http.ResponseWriter, r *http.Request, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tag(text))
	if status == http.StatusOK && matches(r.Header.Get("If-None-Match"), tag(text)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(text, '\n'))
	}
}

// tag is the strong entity tag of a representation.
func tag(text []byte) string {
	sum := sha256.Sum256(text)
	return fmt.Sprintf(`"%x"`, sum[:12])
}

// matches reports whether a header of entity tags names one.
func matches(header, tag string) bool {
	for _, t := range strings.Split(header, ",") {
		if t = strings.TrimSpace(t); t == tag || t == "*" {
			return true
		}
	}
	return false
}

// message is an error as clients read it (CAMP 1.1 csd02, table 3).
type message struct {
	Text    string `json:"text"`
	Code    string `json:"code,omitempty"`
	Field   string `json:"field,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// attributeError is a refusal about an attribute.
type attributeError struct {
	status int
	name   string
	why    string
}

func (e *attributeError) Error() string { return fmt.Sprintf("attribute %q: %s", e.name, e.why) }

func refuseAttribute(status int, name, format string, args ...any) error {
	return &attributeError{status, name, fmt.Sprintf(format, args...)}
}

// fail answers with an error.
func (f *Face) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody is there to be told
	}
	var about *attributeError
	if errors.As(err, &about) {
		err = &rest.Error{Status: about.status, Err: err}
	}
	var wrong *languages.Error
	if errors.As(err, &wrong) && rest.Status(err) == http.StatusInternalServerError {
		err = &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	status, text := rest.Explain(w, err)
	if status == http.StatusInternalServerError {
		f.Log.Error("a call of CAMP failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	list := []message{{Text: text, Code: strings.ReplaceAll(http.StatusText(status), " ", ""), Profile: profile(status)}}
	if about != nil {
		list[0].Field = about.name
	}
	if wrong != nil && status < 500 {
		list = nil
		for _, p := range wrong.Problems {
			list = append(list, message{Text: languages.Problem{Place: p.Place, What: p.What}.String(), Code: "plan", Field: p.Place.Path, Hint: p.Hint, Profile: profile(status)})
		}
	}
	answer, encodeErr := json.Marshal(map[string]any{"message": list})
	if encodeErr != nil {
		http.Error(w, text, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(answer)
	}
}

// profile is the common profile of a status (csd02, table 4).
func profile(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "/msg/security/authentication"
	case http.StatusForbidden:
		return "/msg/access"
	case http.StatusServiceUnavailable:
		return "/msg/allocation/insufficient"
	}
	return "/msg/unknown"
}
