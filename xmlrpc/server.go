package xmlrpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
)

// Method serves the calls of one method. An error that is or wraps a *Fault is
// answered with that fault; any other one is logged and answered with
// InternalError, without its text. Use Param to read the parameters.
type Method func(ctx context.Context, params []any) (any, error)

// Methods are the methods of a server by name.
type Methods map[string]Method

// Names lists the methods, sorted.
func (m Methods) Names() []string { return slices.Sorted(maps.Keys(m)) }

// Server serves methods over HTTP. Its fields must not be changed while it
// serves.
type Server struct {
	Methods    Methods
	Limits     Limits     // of calls
	Extensions Extensions // of responses
	Logger     *slog.Logger

	// TooLarge, when set, makes the answer to a call that exceeds a limit:
	// a result, or an error as of a Method. The method is not known then.
	// Without it, a body that is too large is answered with status 413 and
	// other excesses with a fault.
	TooLarge func(ctx context.Context, e *LimitError) (any, error)
	// Discard is how many bytes of a body that is too large are read
	// before it is answered: clients do not read an answer before they have
	// written all. 0 is 128 MiB.
	Discard int64
}

const defaultDiscard = 128 << 20

// ServeHTTP serves one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := s.admit(r); refusal != nil {
		refusal.write(w)
		return
	}
	doc, err := s.body(r)
	if err != nil {
		var tooLarge *LimitError
		if errors.As(err, &tooLarge) {
			s.discard(r)
			if s.TooLarge != nil {
				s.answerTooLarge(w, r, tooLarge)
				return
			}
			err = &httpRefusal{http.StatusRequestEntityTooLarge, err.Error(), nil}
		}
		var refusal *httpRefusal
		if !errors.As(err, &refusal) {
			// The client is gone or too slow: nobody to answer, most likely.
			refusal = &httpRefusal{http.StatusBadRequest, err.Error(), nil}
		}
		refusal.write(w)
		return
	}
	call, err := DecodeCall(doc, s.Limits)
	doc = nil // large, and not needed while the method runs
	if err != nil {
		s.answerUnread(w, r, err)
		return
	}
	method, ok := s.Methods[call.Method]
	if !ok {
		s.send(w, r, NewFault(&Fault{MethodNotFound, fmt.Sprintf("there is no method %s", call.Method)}))
		return
	}
	s.answer(w, r, call.Method, func(ctx context.Context) (any, error) { return method(ctx, call.Params) })
}

// httpRefusal is an answer that is not XML-RPC.
type httpRefusal struct {
	status int
	text   string
	header http.Header
}

func (e *httpRefusal) Error() string { return e.text }

func (e *httpRefusal) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), e.header)
	http.Error(w, e.text, e.status)
}

// admit looks at the request without its body.
func (s *Server) admit(r *http.Request) *httpRefusal {
	if r.Method != http.MethodPost {
		return &httpRefusal{http.StatusMethodNotAllowed, "This is a place for XML-RPC: calls are sent with POST.",
			http.Header{"Allow": {http.MethodPost}}}
	}
	// A browser that holds a client certificate must not be led to call by
	// another site's page. Other clients are not concerned.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return &httpRefusal{http.StatusForbidden, err.Error(), nil}
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		media, _, err := mime.ParseMediaType(contentType)
		if media == "" || err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			media = contentType
		}
		if media != "text/xml" && media != "application/xml" && !strings.HasSuffix(media, "+xml") {
			return &httpRefusal{http.StatusUnsupportedMediaType,
				fmt.Sprintf("Content-Type %q: want text/xml", shorten(contentType)), http.Header{"Accept": {"text/xml"}}}
		}
	}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity", "gzip", "x-gzip":
		return nil
	default:
		return &httpRefusal{http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Encoding %q: want gzip or none", shorten(encoding)), http.Header{"Accept-Encoding": {"gzip"}}}
	}
}

// body reads the document. When there is more than the limit, the error is a
// *LimitError.
func (s *Server) body(r *http.Request) ([]byte, error) {
	limit := s.Limits.orDefaults().Bytes
	compressed := strings.Contains(strings.ToLower(r.Header.Get("Content-Encoding")), "gzip")
	if r.ContentLength > limit {
		return nil, &LimitError{What: "bytes in the request", Limit: limit}
	}
	from := io.LimitReader(r.Body, limit+1)
	if compressed {
		unzip, err := gzip.NewReader(from)
		if err != nil {
			return nil, &httpRefusal{http.StatusBadRequest, fmt.Sprintf("read gzip: %v", err), nil}
		}
		defer unzip.Close()
		from = io.LimitReader(unzip, limit+1)
	}
	doc, err := readAll(from, r.ContentLength)
	if int64(len(doc)) > limit {
		return nil, &LimitError{What: "bytes in the request", Limit: limit}
	}
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return doc, nil
}

// readAll reads a document of about the size announced, which it does not
// trust beyond a megabyte.
func readAll(from io.Reader, announced int64) ([]byte, error) {
	var doc bytes.Buffer
	doc.Grow(int(min(max(announced, 0), 1<<20)) + bytes.MinRead)
	_, err := doc.ReadFrom(from)
	return doc.Bytes(), err
}

// discard lets the client finish writing. One that waits for "100 Continue"
// has not begun.
func (s *Server) discard(r *http.Request) {
	most := s.Discard
	if most <= 0 {
		most = defaultDiscard
	}
	if r.Header.Get("Expect") != "" || r.ContentLength > s.Limits.orDefaults().Bytes+most {
		return
	}
	io.CopyN(io.Discard, r.Body, most)
}

// answerUnread answers a document that could not be read.
func (s *Server) answerUnread(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *LimitError
	if errors.As(err, &tooLarge) && s.TooLarge != nil {
		s.answerTooLarge(w, r, tooLarge)
		return
	}
	code := InvalidXMLRPC
	var bad *DecodeError
	if errors.As(err, &bad) {
		code = bad.Code
	}
	s.send(w, r, NewFault(&Fault{code, err.Error()}))
}

func (s *Server) answerTooLarge(w http.ResponseWriter, r *http.Request, e *LimitError) {
	s.answer(w, r, "", func(ctx context.Context) (any, error) { return s.TooLarge(ctx, e) })
}

// answer sends what f returns. name is of the method, "" when it is unknown.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string, f func(context.Context) (any, error)) {
	result, err := s.guarded(r.Context(), name, f)
	var m *Message
	if err == nil {
		m, err = NewResponse(s.Extensions, result)
	}
	if err != nil {
		var fault *Fault
		if !errors.As(err, &fault) {
			s.logger().ErrorContext(r.Context(), "call failed", "method", name, "error", err)
			fault = &Fault{InternalError, "internal error; the server's log has more"}
		}
		m = NewFault(fault)
	}
	s.send(w, r, m)
}

// guarded turns a panic into an error.
func (s *Server) guarded(ctx context.Context, name string, f func(context.Context) (any, error)) (result any, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.logger().ErrorContext(ctx, "panic in a method", "method", name, "panic", p, "stack", string(debug.Stack()))
		result, err = nil, &Fault{InternalError, "internal error; the server's log has more"}
	}()
	return f(ctx)
}

func (s *Server) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, m *Message) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	w.Header().Set("Content-Length", fmt.Sprint(m.Size()))
	if _, err := m.WriteTo(w); err != nil {
		s.logger().InfoContext(r.Context(), "response not sent", "error", err)
	}
}
