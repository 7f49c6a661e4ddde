// Package am is the HTTP side of the AM API: it finds out who calls, bounds
// what a call can take, hands it to the codec of its version (packages v2, v3
// and faa), and writes the audit log.
package am

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"croft/aggregate"
	"croft/am/faa"
	"croft/am/v2"
	"croft/am/v3"
	"croft/am/wire"
	"croft/credentials"
	"croft/xmlrpc"
)

// Config is what an API works with.
type Config struct {
	Service  *aggregate.Service
	Trust    *credentials.Trust
	Verifier *credentials.Verifier
	Log      *slog.Logger
	Clock    func() time.Time

	RequestBytes    int64 // most bytes of a call, as sent and expanded
	Nesting         int   // of XML-RPC values
	ConcurrentCalls int   // at a time; more are told to come again

	// URL is what clients that send no Host header reach this server by. Of
	// it, scheme and host count.
	URL string
}

// API answers calls of all versions of the AM API.
type API struct {
	Config
	slots    chan struct{} // of calls being done
	large    chan struct{} // of large requests being read
	versions []version
}

const (
	// largeRequest is from how many bytes on a request is large: as many large
	// ones as calls may be under way at a time, so that many of them do not take
	// all memory, and those who send them slowly hold up only each other.
	largeRequest = 1 << 20
	// strangersRequest is how much is read of those who are nobody here.
	strangersRequest = 1 << 20
)

// version is one face of the service.
type version struct {
	key     string // in geni_api_versions
	paths   []string
	methods map[string]wire.Method
	reply   func(value any, output string, err error) map[string]any
	apiKey  string // what GetVersion repeats beside its value
}

// New makes an API.
func New(c Config) *API {
	a := &API{Config: c, slots: make(chan struct{}, c.ConcurrentCalls), large: make(chan struct{}, c.ConcurrentCalls)}
	session := wire.Session{Verifier: c.Verifier}
	three := &v3.API{Service: c.Service, Session: session}
	two := &v2.API{Service: c.Service, Session: session}
	federation := faa.New(c.Service, session)
	a.versions = []version{
		{key: "3", paths: []string{"/am/3.0", "/", "/RPC2"}, methods: three.Methods(), reply: wire.Reply, apiKey: "geni_api"},
		{key: "2", paths: []string{"/am/2.0"}, methods: two.Methods(), reply: wire.Reply, apiKey: "geni_api"},
		{key: faa.Key, paths: []string{"/am/faa1"}, methods: federation.Methods(), reply: faa.Reply, apiKey: ":api"},
	}
	return a
}

// urls are the versions and their paths, as GetVersion lists them.
func (a *API) urls() map[string]string {
	urls := make(map[string]string, len(a.versions))
	for _, v := range a.versions {
		urls[v.key] = v.paths[0]
	}
	return urls
}

// Handler serves all versions to callers whose certificates chains finds.
func (a *API) Handler(chains Chains) http.Handler {
	mux := http.NewServeMux()
	for _, v := range a.versions {
		handler := a.handle(v, chains)
		for _, path := range v.paths {
			if path == "/" {
				path = "/{$}"
			} else {
				mux.Handle(path+"/{$}", handler)
			}
			mux.Handle(path, handler)
		}
	}
	return mux
}

// handle serves one version.
func (a *API) handle(v version, chains Chains) http.Handler {
	server := &xmlrpc.Server{
		Methods: xmlrpc.Methods{},
		// A document in a parameter is one string; the values beside it are few.
		Limits: xmlrpc.Limits{Bytes: a.RequestBytes, Depth: a.Nesting},
		Logger: a.Log,
	}
	for name, method := range v.methods {
		server.Methods[name] = func(ctx context.Context, params []any) (any, error) {
			return a.call(ctx, v, name, method, params), nil
		}
	}
	introspect := func(name string, do func(params []any) (any, error)) {
		server.Methods[name] = func(ctx context.Context, params []any) (any, error) {
			in := incomingOf(ctx)
			in.method = name
			value, err := do(params)
			if err == nil {
				a.audit(ctx, in, v, name, &wire.Call{}, nil)
			}
			return value, err
		}
	}
	introspect("system.listMethods", func([]any) (any, error) { return listMethods(server.Methods), nil })
	introspect("system.methodHelp", func(params []any) (any, error) { return methodHelp(v.key, server.Methods, params) })
	introspect("system.methodSignature", func(params []any) (any, error) { return methodSignature(v.key, server.Methods, params) })
	server.TooLarge = func(ctx context.Context, e *xmlrpc.LimitError) (any, error) {
		err := fmt.Errorf("%w: %w", wire.ErrTooBig, e)
		a.audit(ctx, incomingOf(ctx), v, "", &wire.Call{}, err)
		return v.reply(nil, "", err), nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := &incoming{began: a.Clock(), from: remote(r), baseURL: a.baseURL(r)}
		ctx := context.WithValue(r.Context(), incomingKey{}, in)
		if r.ContentLength < 0 || r.ContentLength > largeRequest {
			select {
			case a.large <- struct{}{}:
				defer func() { <-a.large }()
			default:
				w.Header().Set("Retry-After", "1")
				http.Error(w, wire.ErrServerBusy.Error(), http.StatusServiceUnavailable)
				a.audit(ctx, in, v, "", &wire.Call{}, wire.ErrServerBusy)
				return
			}
		}
		in.caller, in.err = a.identify(r, chains)
		if in.err != nil {
			r.Body = http.MaxBytesReader(w, r.Body, strangersRequest)
		}
		server.ServeHTTP(w, r.WithContext(ctx))
		if !in.audited {
			a.auditUnread(ctx, in, v, r.Method)
		}
	})
}

// identify finds out who calls.
func (a *API) identify(r *http.Request, chains Chains) (*credentials.Caller, error) {
	chain, err := chains(r)
	if err != nil {
		return nil, &credentials.Refusal{Text: "no client certificate: " + err.Error(), Err: err}
	}
	return a.Trust.Identify(chain)
}

// incoming is what is known of an HTTP request when its call is read.
type incoming struct {
	began   time.Time
	from    string
	baseURL string
	caller  *credentials.Caller
	err     error // why there is no caller

	method  string // if it is one of those about methods
	audited bool
}

type incomingKey struct{}

func incomingOf(ctx context.Context) *incoming { return ctx.Value(incomingKey{}).(*incoming) }

// call does one call and makes the struct that answers it.
func (a *API) call(ctx context.Context, v version, name string, method wire.Method, params []any) map[string]any {
	in := incomingOf(ctx)
	c := &wire.Call{BaseURL: in.baseURL, Versions: a.urls()}
	value, output, err := a.guarded(ctx, in, c, method, params)
	a.audit(ctx, in, v, name, c, err)
	reply := v.reply(value, output, err)
	if s, ok := value.(map[string]any); ok && name == "GetVersion" && err == nil {
		reply[v.apiKey] = s[v.apiKey]
	}
	return reply
}

func (a *API) guarded(ctx context.Context, in *incoming, c *wire.Call, method wire.Method, params []any) (any, string, error) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		return nil, "", wire.ErrServerBusy
	}
	if in.err != nil {
		return nil, "", in.err
	}
	c.Caller = in.caller
	return method(ctx, c, params)
}

// baseURL is this server as the client reached it.
func (a *API) baseURL(r *http.Request) string {
	if r.Host != "" && !strings.ContainsAny(r.Host, "/ \"<>") {
		return "https://" + r.Host
	}
	scheme, rest, _ := strings.Cut(a.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
