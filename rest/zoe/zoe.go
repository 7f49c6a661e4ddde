// Package zoe is the REST face of Zoe (API 0.7), by which its command line
// clients of 2017.03 and 2018.12 work: ZApps are executions, and an execution
// is a slice of the caller's member.
//
// Slices that the member has made otherwise are executions, too, with a service
// for each node; the scheduler leaves them as they are.
//
// Beside the calls it has Zoe's scheduler. An execution waits until there is
// room for its essential services; elastic ones get what nobody waits for, and
// are taken away for the essential services of another execution. Nothing else
// of the aggregate waits or is taken away.
package zoe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
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
	Path     string // where the face is, such as "/zoe"
	Version  string // of the program
	// BySize has small executions start before larger ones; otherwise they do
	// in the order they came.
	BySize bool
	// Every is how often the scheduler looks for room by itself.
	Every  time.Duration
	After  func(time.Duration) <-chan time.Time // time.After, but for tests
	Clock  func() time.Time
	Random io.Reader
	Log    *slog.Logger
}

// Face serves Zoe's API.
type Face struct {
	Config
	mux      *http.ServeMux
	sessions *sessions
	streams  chan struct{} // slots for followers of logs
	wake     chan struct{}
	passing  sync.Mutex // held by a pass of the scheduler
	futile   map[int64]attempt

	mu         sync.Mutex // guards what follows, and the executions themselves
	executions map[int64]*execution
	ids        ids
}

const (
	faceName   = "zoe"
	base       = "/api/0.7"
	maxStreams = 32
	maxZApp    = 1 << 20 // bytes
)

// New makes the face with the executions that its records have. Run has them
// scheduled.
func New(c Config) (*Face, error) {
	if c.After == nil {
		c.After = time.After
	}
	if c.Every <= 0 {
		c.Every = time.Minute
	}
	f := &Face{
		Config: c, mux: http.NewServeMux(), sessions: newSessions(c.Clock, c.Random), streams: make(chan struct{}, maxStreams),
		wake: make(chan struct{}, 1), futile: map[int64]attempt{}, executions: map[int64]*execution{},
	}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("executions of Zoe: %w", err)
	}
	c.Service.WhenEnding(f.keepLogs)
	f.mux.HandleFunc("GET "+base+"/info", func(w http.ResponseWriter, _ *http.Request) { f.info(w) })
	f.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		text, err := OpenAPI()
		if err != nil {
			f.fail(w, r, err)
			return
		}
		rest.ServeOpenAPI(w, text)
	})
	for pattern, do := range map[string]func(*call) error{
		"GET /login":                    (*call).login,
		"POST /zapp_validate":           (*call).validate,
		"GET /execution":                (*call).list,
		"POST /execution":               (*call).start,
		"GET /execution/{id}":           (*call).show,
		"DELETE /execution/{id}":        (*call).terminate,
		"DELETE /execution/delete/{id}": (*call).delete,
		"GET /execution/endpoints/{id}": (*call).endpoints,
		"GET /service/{id}":             (*call).service,
		"GET /service/logs/{id}":        (*call).logs,
		"GET /statistics/scheduler":     (*call).statistics,
		"GET /user/{id}":                (*call).user,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		f.mux.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, do) })
	}
	f.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.fail(w, r, rest.Refuse(http.StatusNotFound, "there is no such call of Zoe's API 0.7 here"))
	})
	return f, nil
}

// ServeHTTP answers a request below Path.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// call is a request of somebody who is known.
type call struct {
	*Face
	ctx  context.Context
	w    http.ResponseWriter
	r    *http.Request
	id   *rest.Identity
	self int64 // the caller's number
}

func (f *Face) serve(w http.ResponseWriter, r *http.Request, do func(*call) error) {
	id, err := f.caller(r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	c := &call{Face: f, ctx: r.Context(), w: w, r: r, id: id}
	if c.self, err = f.number(id.Member); err == nil {
		err = do(c)
	}
	if err != nil {
		f.fail(w, r, err)
	}
}

// caller is who calls: by the password or token of an account, or by the cookie
// that a login has given.
func (f *Face) caller(r *http.Request) (*rest.Identity, error) {
	if r.Header.Get("Authorization") == "" {
		if cookie, err := r.Cookie(cookieName); err == nil {
			if id := f.sessions.find(cookie.Value); id != nil {
				return id, nil
			}
			return nil, rest.Refuse(http.StatusUnauthorized, "the session has ended: log in again")
		}
	}
	return f.Accounts.FromHeader(r)
}

// authority is what the slices of an identity's executions are in.
func (f *Face) authority(id *rest.Identity) urn.Authority {
	return id.Authority(f.Service.Manager().Authority.Top(), faceName)
}

// principal acts for the member of an execution, also when nobody calls.
func (f *Face) principal(e *execution) *credentials.Principal {
	return rest.PrincipalOf(f.Service.Manager().Authority.Top(), e.Member, f.Clock, e.Slice)
}

func (c *call) answer(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}

// fail answers with an error: as JSON for clients of 2017.03, and as the reason
// phrase, which those of 2018.12 show.
func (f *Face) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody is there to be told
	}
	var wrong *languages.Error
	if errors.As(err, &wrong) && rest.Status(err) == http.StatusInternalServerError {
		err = &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	status, text := rest.Explain(w, err)
	if status == http.StatusInternalServerError {
		f.Log.Error("a call of Zoe's API failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	body, encodeErr := json.Marshal(map[string]string{"message": text})
	if encodeErr != nil {
		body = []byte("{}")
	}
	rest.AnswerReason(w, status, text, "application/json", body)
}

// numbered reads the number in a path.
func (c *call) numbered() (int64, error) {
	n, err := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	if err != nil || n < 0 {
		return 0, rest.Refuse(http.StatusNotFound, "%q is no number", c.r.PathValue("id"))
	}
	return n, nil
}

// info tells what this is, to anybody.
func (f *Face) info(w http.ResponseWriter) {
	c := &call{Face: f, w: w}
	_ = c.answer(http.StatusOK, map[string]any{
		"version": "croft " + f.Version, "api_version": "0.7", "application_format_version": 3,
		"deployment_name": string(f.Service.Manager().Authority.Top()),
	})
}

// login opens a session.
func (c *call) login() error {
	value, err := c.sessions.open(c.id)
	if err != nil {
		return err
	}
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName, Value: value, Path: c.Path + "/", MaxAge: int(sessionTime / time.Second),
		HttpOnly: true, Secure: c.r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
	return c.answer(http.StatusOK, map[string]any{"user": c.account()})
}

// account is the caller as Zoe's clients know users.
func (c *call) account() map[string]any {
	return map[string]any{
		"id": c.self, "username": c.id.Account, "fs_uid": c.self, "email": "", "priority": 0, "enabled": true,
		"auth_source": "internal", "quota_id": 1, "role_id": 1, "role": "user",
	}
}

func (c *call) user() error {
	if n, err := c.numbered(); err != nil || n != c.self {
		return rest.Refuse(http.StatusNotFound, "there is no such user, or it is somebody else")
	}
	return c.answer(http.StatusOK, map[string]any{"user": c.account()})
}
