// Package im is the REST API of the Infrastructure Manager (IM), version 2.0,
// as far as its clients use it for infrastructures: an infrastructure is a
// slice in a sub-authority of its member, its virtual machines are the nodes
// of the slice, and they are configured when the nodes' start-up has ended.
//
// Slices that the member has made otherwise are infrastructures, too, whose
// RADL is derived of their nodes and links; nothing is added to them here.
//
// What is different from the Infrastructure Manager: machines are changed only
// by adding and removing some, recipes run in the machines that they configure,
// and infrastructures end with the leases of the testbed. The private key that
// opens the machines of an infrastructure is never stored: it is derived from
// the password or token that the caller gives with every call.
package im

import (
	"context"
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
	"croft/rest"
	"croft/urn"
)

// Version is the version of the Infrastructure Manager whose API this is.
const Version = "2.0.0"

// faceName is the name of this face in authorities.
const faceName = "im"

// Config is what a Face works with. All members are needed.
type Config struct {
	Service  *aggregate.Service
	Accounts *rest.Accounts
	Records  *rest.Records
	// Base is the URL that the face is found at from outside, without a slash
	// at its end; "" takes what the client has called.
	Base   string
	Path   string // that the face is mounted at, such as "/im"
	Clock  func() time.Time
	Random io.Reader
	Log    *slog.Logger
}

// Face is the API. It is an http.Handler.
type Face struct {
	Config
	mux   *http.ServeMux
	locks rest.Locks
}

// New makes a face.
func New(c Config) *Face {
	f := &Face{Config: c, mux: http.NewServeMux()}
	f.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		text, err := OpenAPI()
		if err != nil {
			f.fail(w, r, err)
			return
		}
		rest.ServeOpenAPI(w, text)
	})
	f.mux.HandleFunc("GET /version", func(w http.ResponseWriter, r *http.Request) {
		f.reply(w, r, plain, "version", Version)
	})
	for pattern, handle := range map[string]func(*call) error{
		"GET /infrastructures":                                 (*call).list,
		"POST /infrastructures":                                (*call).create,
		"GET /infrastructures/{id}":                            (*call).machines,
		"POST /infrastructures/{id}":                           (*call).extend,
		"DELETE /infrastructures/{id}":                         (*call).destroy,
		"GET /infrastructures/{id}/{property}":                 (*call).property,
		"PUT /infrastructures/{id}/{operation}":                (*call).operate,
		"POST /infrastructures/{id}/authorization":             (*call).authorize,
		"GET /infrastructures/{id}/vms/{machines}":             (*call).machine,
		"GET /infrastructures/{id}/vms/{machines}/{property}":  (*call).machineProperty,
		"PUT /infrastructures/{id}/vms/{machines}":             (*call).alter,
		"PUT /infrastructures/{id}/vms/{machines}/{operation}": (*call).operateMachine,
		"DELETE /infrastructures/{id}/vms/{machines}":          (*call).remove,
		"GET /clouds/{cloud}/{property}":                       (*call).cloud,
	} {
		f.mux.HandleFunc(pattern, f.handler(handle))
	}
	f.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.fail(w, r, rest.Refuse(http.StatusNotFound, "there is no %s %s in this API", r.Method, r.URL.Path))
	})
	return f
}

func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// call is a request of somebody who is known.
type call struct {
	*Face
	ctx context.Context
	w   http.ResponseWriter
	r   *http.Request
	id  *rest.Identity
	// authority is that of the caller's infrastructures, and owner the folder
	// of their records.
	authority urn.Authority
	owner     string
	principal *credentials.Principal
}

func (f *Face) handler(handle func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := f.identify(r)
		if err != nil {
			f.fail(w, r, err)
			return
		}
		site := f.Service.Manager().Authority.Top()
		c := &call{Face: f, ctx: r.Context(), w: w, r: r, id: id, authority: id.Authority(site, faceName), owner: id.Owner(site)}
		c.principal = id.Principal(site)
		if err := handle(c); err != nil {
			f.fail(w, r, err)
		}
	}
}

// fail answers with an error in the form that the client wants.
func (f *Face) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody is there to be told
	}
	status, text := rest.Explain(w, err)
	if status == http.StatusInternalServerError {
		f.Log.Error("a call of the IM API failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if wants(r, plain) == asJSON {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": text, "code": status})
		return
	}
	http.Error(w, text, status)
}

// form is how an answer is written.
type form int

const (
	plain form = iota
	asJSON
	uriList
)

// wants is the form that a client accepts, or usual if it takes any.
func wants(r *http.Request, usual form) form {
	for _, header := range r.Header.Values("Accept") {
		for _, part := range strings.Split(header, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json":
				return asJSON
			case "text/uri-list":
				return uriList
			case "text/plain", "text/*":
				return plain
			}
		}
	}
	return usual
}

// reply answers with a property: its value, or an object that has it.
func (f *Face) reply(w http.ResponseWriter, r *http.Request, usual form, property string, value any) {
	text, isText := value.(string)
	if f := wants(r, usual); f != asJSON && isText {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{property: value})
}

// uris answers with a list of addresses.
func (c *call) uris(list []string, usual form) {
	if wants(c.r, usual) == asJSON {
		objects := make([]map[string]string, len(list))
		for i, u := range list {
			objects[i] = map[string]string{"uri": u}
		}
		c.w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(c.w).Encode(map[string]any{"uri-list": objects})
		return
	}
	c.w.Header().Set("Content-Type", "text/uri-list")
	_, _ = io.WriteString(c.w, strings.Join(list, "\n"))
}

// done answers that something was done.
func (c *call) done() error {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// url is the address of an infrastructure.
func (c *call) url(id string) string {
	base := c.Base
	if base == "" {
		scheme := "http"
		if c.r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + c.r.Host + c.Path
	}
	return base + "/infrastructures/" + id
}

// yes reports whether a parameter of the query is set.
func (c *call) yes(name string) bool {
	switch strings.ToLower(c.r.URL.Query().Get(name)) {
	case "yes", "true", "1":
		return true
	}
	return false
}

// slice is the slice of an infrastructure.
func (c *call) slice(id string) urn.URN {
	return urn.URN{Authority: c.authority, Type: urn.Slice, Name: id}
}

// authorize would give an infrastructure to somebody else.
func (c *call) authorize() error {
	return rest.Refuse(http.StatusForbidden, "infrastructures stay with the member that made them: accounts are a matter of this site's configuration")
}

// cloud tells of the testbed as of a cloud.
func (c *call) cloud() error {
	switch property := c.r.PathValue("property"); property {
	case "images":
		images := []map[string]string{}
		for _, i := range c.Service.Inventory().Images {
			images = append(images, map[string]string{"uri": i.ID.String(), "name": i.Name})
		}
		c.w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(c.w).Encode(map[string]any{"images": images})
	default:
		return rest.Refuse(http.StatusNotFound, "there is no %q of a cloud here: there are images", fmt.Sprintf("%.40s", property))
	}
}
