// Package rest is what the REST faces of Croft share: a listener of their own,
// accounts with passwords and tokens, and a place to keep what a face has to
// remember. Each face is a folder of its own (rest/im, …): an http.Handler on
// the service of package aggregate.
//
// Who calls is found by Accounts; what the caller does is done by the
// principal of the Identity, which has all rights on the slices of sub-authorities
// of the site, one for each face, and none elsewhere but on those that its
// member has made by the AM API. So everything that a face makes is a slice
// that only its account's member sees, through every face and the AM API, and
// that other callers have no rights on.
package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// Config is what a handler for all faces is made of.
type Config struct {
	// Faces are the handlers, by the path that they are below, such as "/im".
	// They see the paths without it.
	Faces map[string]http.Handler
	Log   *slog.Logger
	Clock func() time.Time
	// BodyBytes bounds the bodies of requests.
	BodyBytes int64
	// Concurrent bounds the requests that are worked on at a time.
	Concurrent int
}

// Handler serves all faces.
func Handler(c Config) http.Handler {
	mux := http.NewServeMux()
	var paths []string
	for path, face := range c.Faces {
		paths = append(paths, path)
		mux.Handle(path+"/", http.StripPrefix(path, face))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "there is nothing at this address: try "+strings.Join(paths, ", "), http.StatusNotFound)
	})
	slots := make(chan struct{}, max(c.Concurrent, 1))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-r.Context().Done():
			return
		}
		begun := c.Clock()
		recorder := &recorder{ResponseWriter: w, status: http.StatusOK}
		r.Body = http.MaxBytesReader(w, r.Body, c.BodyBytes)
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, recorder))
		defer func() {
			if e := recover(); e != nil {
				if e == http.ErrAbortHandler {
					panic(e)
				}
				c.Log.Error("a REST call broke", "error", fmt.Sprint(e), "stack", string(debug.Stack()))
				if !recorder.begun {
					http.Error(recorder, "the server has made a mistake; its log says more", http.StatusInternalServerError)
				}
			}
			// The query may hold what is nobody's business, as headers do.
			c.Log.Info("rest", "method", r.Method, "path", r.URL.Path, "status", recorder.status, "source", Source(r),
				"account", recorder.account, "time", c.Clock().Sub(begun).Round(time.Millisecond).String())
		}()
		w.Header().Del("Server")
		mux.ServeHTTP(recorder, r)
	})
}

type callKey struct{}

// recorder notes how a call went, for the log.
type recorder struct {
	http.ResponseWriter
	status  int
	begun   bool
	account string
}

func (r *recorder) WriteHeader(status int) {
	if !r.begun {
		r.status, r.begun = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.begun = true
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController have the writer itself.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// note writes the account of a call into its log line.
func note(ctx context.Context, account string) {
	if r, ok := ctx.Value(callKey{}).(*recorder); ok {
		r.account = account
	}
}

// Source is the address that a request comes from, without its port.
func Source(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// ErrTooLarge says that the body of a request is longer than may be.
var ErrTooLarge = errors.New("the body of the request is too large")

// Body reads the body of a request.
func Body(r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, fmt.Errorf("%w: at most %d bytes", ErrTooLarge, large.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the body of the request: %w", err)
	}
	return text, nil
}
