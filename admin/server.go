package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"croft/aggregate"
	"croft/am/wire"
	"croft/urn"
)

// Server lets the operator in to a service.
type Server struct {
	Service *aggregate.Service
	Log     *slog.Logger
	Clock   func() time.Time
}

// maxCall bounds what is read of a call.
const maxCall = 64 << 10

// callTime bounds a call. Longer than a call on a slice waits for another one.
const callTime = time.Minute

// Listen opens the socket at path and serves until the returned function is
// called, which waits for calls under way and removes the socket.
func (s *Server) Listen(path string) (stop func(), err error) {
	l, err := listen(path)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: s.Handler(), ReadTimeout: callTime, WriteTimeout: callTime, IdleTimeout: callTime, MaxHeaderBytes: maxCall,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			uid, err := peer(c)
			return context.WithValue(ctx, callerKey{}, caller{uid, err})
		},
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("the operator's socket", "error", err)
		}
	}()
	stop = func() {
		os.Remove(path)
		grace, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			server.Close()
		}
		<-ended
	}
	return stop, nil
}

// caller is who is at the other end.
type caller struct {
	uid int
	err error
}

type callerKey struct{}

// Handler answers calls. It lets in only whom Listen has found to be root or
// the user that this process runs as.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern, action string, do func(r *http.Request, about Name) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, action, do) })
	}
	handle("GET /slices", "slices", func(r *http.Request, _ Name) (any, error) {
		list, err := s.Service.Slices(r.Context())
		return convert(list, sliceOf), err
	})
	handle("GET /slivers", "slivers", func(r *http.Request, slice Name) (any, error) {
		list, err := s.Service.Slivers(r.Context(), slice.URN)
		return convert(list, sliverOf), err
	})
	handle("GET /strays", "strays", func(r *http.Request, _ Name) (any, error) {
		list, err := s.Service.Strays(r.Context())
		return convert(list, strayOf), err
	})
	handle("GET /events", "events", func(r *http.Request, slice Name) (any, error) {
		list, err := s.Service.Events(r.Context(), slice.URN)
		return convert(list, eventOf), err
	})
	handle("POST /shutdown", "shutdown", func(r *http.Request, slice Name) (any, error) {
		return slice, s.Service.Halt(r.Context(), slice.URN)
	})
	handle("POST /lift", "lift", func(r *http.Request, slice Name) (any, error) {
		return slice, s.Service.LiftShutdown(r.Context(), slice.URN)
	})
	handle("POST /delete", "delete", func(r *http.Request, name Name) (any, error) {
		list, err := s.Service.Free(r.Context(), name.URN, name.Force)
		return convert(list, freedOf), err
	})
	handle("GET /hosts", "hosts", func(r *http.Request, _ Name) (any, error) {
		list, err := s.Service.Hosts(r.Context())
		return convert(list, hostOf), err
	})
	handle("GET /machines", "machines", func(r *http.Request, _ Name) (any, error) {
		list, silent, err := s.Service.Compare(r.Context())
		return Machines{Things: convert(list, thingOf), Silent: append([]string{}, silent...)}, err
	})
	handle("POST /drain", "drain", func(r *http.Request, host Name) (any, error) {
		return host, s.Service.Drain(r.Context(), host.URN, host.Reason)
	})
	handle("POST /undrain", "undrain", func(r *http.Request, host Name) (any, error) {
		return host, s.Service.Undrain(r.Context(), host.URN)
	})
	return mux
}

// answer does one call, and writes its line of the audit log.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, action string, do func(*http.Request, Name) (any, error)) {
	began := s.Clock()
	who, ok := r.Context().Value(callerKey{}).(caller)
	var about Name
	var value any
	err := errNobody
	switch {
	case !ok:
	case who.err != nil:
		err = who.err
	case who.uid != 0 && who.uid != os.Geteuid():
		err = fmt.Errorf("%w: you are user %d", errNobody, who.uid)
	default:
		if about, err = name(r); err == nil {
			value, err = do(r, about)
		}
	}
	code := codeOf(err)
	attrs := []slog.Attr{
		slog.String("api", "admin"), slog.String("method", action), slog.String("code", code.String()),
		slog.Duration("took", s.Clock().Sub(began)), slog.String("caller", fmt.Sprintf("user %d", who.uid)),
	}
	if !about.URN.IsZero() {
		attrs = append(attrs, slog.String("on", about.URN.String()))
	}
	if about.Force {
		attrs = append(attrs, slog.Bool("force", true))
	}
	if about.Reason != "" {
		attrs = append(attrs, slog.String("reason", about.Reason))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		value = failure{Code: int(code), Message: err.Error()}
	}
	s.Log.LogAttrs(r.Context(), slog.LevelInfo, "call", attrs...)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(code))
	if err := json.NewEncoder(w).Encode(value); err != nil {
		s.Log.Debug("answering the operator", "error", err)
	}
}

// errNobody refuses users who are not the operator.
var errNobody = errors.New("only root and the user that the server runs as may do this")

// badName is what a call is about and is no URN.
type badName struct{ error }

// name reads what a call is about; nothing for all there is.
func name(r *http.Request) (Name, error) {
	var n Name
	if r.Method == http.MethodGet {
		text := r.URL.Query().Get("slice")
		if text == "" {
			return n, nil
		}
		var err error
		if n.URN, err = urn.Parse(text); err != nil {
			return n, badName{err}
		}
		return n, nil
	}
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxCall))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return n, badName{fmt.Errorf("reading what the call is about: %w", err)}
	}
	if n.URN.IsZero() {
		return n, badName{errors.New("no URN")}
	}
	return n, nil
}

func codeOf(err error) wire.Code {
	var bad badName
	switch {
	case errors.As(err, &bad):
		return wire.BadArgs
	case errors.Is(err, errNobody):
		return wire.Forbidden
	}
	return wire.CodeOf(err)
}

func statusOf(c wire.Code) int {
	switch c {
	case wire.Success:
		return http.StatusOK
	case wire.BadArgs:
		return http.StatusBadRequest
	case wire.Forbidden:
		return http.StatusForbidden
	case wire.SearchFailed:
		return http.StatusNotFound
	case wire.Refused:
		return http.StatusConflict
	case wire.Busy:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
