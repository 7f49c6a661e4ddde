package xmlrpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func echo(_ context.Context, params []any) (any, error) { return params, nil }

// newServer serves a few methods and returns what they log.
func newServer(t testing.TB, change func(*Server)) (*httptest.Server, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	s := &Server{
		Methods: Methods{
			"echo": echo,
			"one":  func(_ context.Context, params []any) (any, error) { return Param(params, 0).any, nil },
			"fault": func(context.Context, []any) (any, error) {
				return nil, fmt.Errorf("wrapped: %w", &Fault{InvalidParams, "not so"})
			},
			"error": func(context.Context, []any) (any, error) { return nil, errors.New("a secret") },
			"panic": func(context.Context, []any) (any, error) { panic("oh no") },
			"abort": func(context.Context, []any) (any, error) { panic(http.ErrAbortHandler) },
			"chan":  func(context.Context, []any) (any, error) { return make(chan int), nil },
		},
		Extensions: Extensions{I8: true, Nil: true},
		Logger:     slog.New(slog.NewTextHandler(log, nil)),
	}
	if change != nil {
		change(s)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv, log
}

func post(t *testing.T, url, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{"Content-Type": {"text/xml"}}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func invoke(method, value string) string {
	return strings.Replace(call(value), "<methodName>m<", "<methodName>"+method+"<", 1)
}

func TestServer(t *testing.T) {
	hello := invoke("one", "<value>hello</value>")
	large := invoke("one", "<value>"+strings.Repeat("a", 100_000)+"</value>")
	long := invoke("one", "<value>"+strings.Repeat("a", 2000)+"</value>")
	typed := func(typ string) http.Header { return http.Header{"Content-Type": {typ}} }
	with := func(name, value string) http.Header {
		return http.Header{"Content-Type": {"text/xml"}, name: {value}}
	}
	srv, log := newServer(t, func(s *Server) { s.Limits = Limits{Bytes: 50_000, String: 1000} })
	for name, test := range map[string]struct {
		body   string
		header http.Header
		status int
		want   string // in the body
	}{
		"call":                  {hello, nil, 200, "<string>hello</string>"},
		"charset":               {hello, typed("text/xml; charset=utf-8"), 200, "hello"},
		"upper case":            {hello, typed("Text/XML"), 200, "hello"},
		"application/xml":       {hello, typed("application/xml"), 200, "hello"},
		"odd parameter":         {hello, typed("text/xml; charset"), 200, "hello"},
		"no type":               {hello, http.Header{}, 200, "hello"},
		"JSON":                  {"{}", typed("application/json"), 415, "text/xml"},
		"a form":                {"a=b", typed("application/x-www-form-urlencoded"), 415, "text/xml"},
		"plain text":            {hello, typed("text/plain"), 415, "text/xml"},
		"another site":          {hello, with("Sec-Fetch-Site", "cross-site"), 403, "cross-origin"},
		"another origin":        {hello, with("Origin", "https://evil.example.org"), 403, "cross-origin"},
		"gzip":                  {gzipped(hello), with("Content-Encoding", "gzip"), 200, "hello"},
		"x-gzip":                {gzipped(hello), with("Content-Encoding", "X-GZIP"), 200, "hello"},
		"identity":              {hello, with("Content-Encoding", "identity"), 200, "hello"},
		"not gzip":              {hello, with("Content-Encoding", "gzip"), 400, "gzip"},
		"gzip cut":              {gzipped(hello)[:50], with("Content-Encoding", "gzip"), 400, "unexpected EOF"},
		"brotli":                {hello, with("Content-Encoding", "br"), 415, "gzip"},
		"too large":             {large, nil, 413, "more than 50000 bytes in the request"},
		"expands too much":      {gzipped(large), with("Content-Encoding", "gzip"), 413, "more than 50000 bytes"},
		"string too long":       {long, nil, 200, "param 1: more than 1000 bytes in a string"},
		"empty":                 {"", nil, 200, "<int>-32700</int>"},
		"not XML-RPC":           {"<a/>", nil, 200, "<int>-32600</int>"},
		"invalid character":     {invoke("one", "<value>\x01</value>"), nil, 200, "<int>-32702</int>"},
		"encoding":              {"<?xml version='1.0' encoding='EBCDIC'?><a/>", nil, 200, "<int>-32701</int>"},
		"no such method":        {invoke("none", "<value/>"), nil, 200, "<int>-32601</int>"},
		"fault":                 {invoke("fault", "<value/>"), nil, 200, "<string>not so</string>"},
		"error":                 {invoke("error", "<value/>"), nil, 200, "<int>-32603</int>"},
		"panic":                 {invoke("panic", "<value/>"), nil, 200, "<int>-32603</int>"},
		"result not for XMLRPC": {invoke("chan", "<value/>"), nil, 200, "<int>-32603</int>"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := post(t, srv.URL, test.body, test.header)
			if resp.StatusCode != test.status || !strings.Contains(body, test.want) {
				t.Errorf("%s %s; want %d %s", resp.Status, body, test.status, test.want)
			}
			if strings.Contains(body, "secret") || strings.Contains(body, "oh no") {
				t.Errorf("tells too much: %s", body)
			}
			if resp.StatusCode == 200 && (resp.ContentLength != int64(len(body)) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/xml")) {
				t.Errorf("%d bytes announced, %d sent: %v", resp.ContentLength, len(body), resp.Header)
			}
		})
	}
	for _, want := range []string{"a secret", "oh no", "server_test.go", "chan int"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}

	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %s %v", resp.Status, resp.Header)
	}
	if _, err := http.Post(srv.URL, "text/xml", strings.NewReader(invoke("abort", "<value/>"))); err == nil {
		t.Error("an aborted call was answered")
	}
}

// TestTooLarge: the application makes the answer, and the client gets to read
// it although it sends far more than the limit.
func TestTooLarge(t *testing.T) {
	srv, _ := newServer(t, func(s *Server) {
		s.Limits = Limits{Bytes: 50_000, Depth: 3}
		s.TooLarge = func(_ context.Context, e *LimitError) (any, error) {
			return map[string]any{"code": map[string]any{"geni_code": 6}, "output": e.Error()}, nil
		}
	})
	c := &Client{URL: srv.URL}
	for name, param := range map[string]any{
		"bytes": strings.Repeat("a", 20<<20),
		"depth": []any{[]any{[]any{[]any{}}}},
	} {
		got, err := c.Call(t.Context(), "one", param)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if code, err := At(got, "result").Member("code").Member("geni_code").Int(); err != nil || code != 6 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestTooLargeUnsent: a client that asks first is told without sending.
func TestTooLargeUnsent(t *testing.T) {
	srv, _ := newServer(t, func(s *Server) { s.Limits = Limits{Bytes: 1000} })
	body := strings.NewReader(strings.Repeat("a", 10<<20))
	req, err := http.NewRequest(http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Expect", "100-continue")
	req.Header.Set("Content-Type", "text/xml")
	tr := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 || body.Len() != 10<<20 {
		t.Errorf("%s, %d bytes were sent", resp.Status, 10<<20-body.Len())
	}
}

func TestMethodNames(t *testing.T) {
	if got := (Methods{"b": echo, "a": echo}).Names(); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

func TestContextEndsWithTheClient(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	srv, _ := newServer(t, func(s *Server) {
		s.Methods["wait"] = func(ctx context.Context, _ []any) (any, error) {
			close(begun)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := (&Client{URL: srv.URL}).Call(ctx, "wait"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-ended
}
