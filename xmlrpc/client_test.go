package xmlrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func Example() {
	server := httptest.NewServer(&Server{Methods: Methods{
		"add": func(_ context.Context, params []any) (any, error) {
			a, err := Param(params, 0).Int()
			if err != nil {
				return nil, &Fault{InvalidParams, err.Error()}
			}
			b, err := Param(params, 1).Int()
			if err != nil {
				return nil, &Fault{InvalidParams, err.Error()}
			}
			return a + b, nil
		},
	}})
	defer server.Close()

	client := &Client{URL: server.URL}
	sum, err := client.Call(context.Background(), "add", 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	_, err = client.Call(context.Background(), "add", 2, "three")
	fmt.Println(err)
	// Output:
	// 5
	// call add: fault -32602: param 2: want an int, got a string
}

func TestClient(t *testing.T) {
	srv, _ := newServer(t, nil)
	c := &Client{URL: srv.URL, Extensions: Extensions{I8: true, Nil: true}}
	want := []any{"a\r\n<é>", 1, 1 << 40, true, 1.25, []byte{0, 255}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), nil,
		[]any{}, map[string]any{"a": []any{map[string]any{}}}}
	got, err := c.Call(t.Context(), "echo", want...)
	if err != nil || !reflect.DeepEqual(got, any(want)) {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = c.Call(t.Context(), "none")
	var fault *Fault
	if !errors.As(err, &fault) || fault.Code != MethodNotFound {
		t.Error(err)
	}
	if _, err := c.Call(t.Context(), "one", make(chan int)); err == nil || !strings.Contains(err.Error(), "param 1") {
		t.Error(err)
	}
}

func TestClientRefusals(t *testing.T) {
	const ok = "<methodResponse><params><param><value>ok</value></param></params></methodResponse>"
	answer := func(status int, header http.Header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	html := http.Header{"Content-Type": {"text/html"}}
	xml := http.Header{"Content-Type": {"text/xml"}}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		status  int // of an HTTPError, or
		want    string
	}{
		"busy":           {answer(503, nil, "try again\n\nlater"), 503, "503 Service Unavailable: try again later"},
		"moved":          {answer(302, http.Header{"Location": {"https://new.example.org/"}}, ""), 302, "with https://new.example.org/ as the place"},
		"web page":       {answer(200, html, "<!DOCTYPE html>\n<html>Welcome</html>"), 200, "Welcome"},
		"mislabelled":    {answer(200, html, ok), 0, ""},
		"not XML-RPC":    {answer(200, xml, "<html/>"), 0, "want <methodResponse>"},
		"empty":          {answer(200, xml, ""), 0, "the document ends"},
		"too large":      {answer(200, xml, ok+strings.Repeat(" ", 1000)), 0, "more than 1000 bytes in the response"},
		"cut off":        {answer(200, http.Header{"Content-Length": {"500"}}, ok), 0, "unexpected EOF"},
		"large and long": {answer(500, nil, strings.Repeat("x", 1<<20)), 500, "500 Internal Server Error: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(test.handler)
			defer srv.Close()
			got, err := (&Client{URL: srv.URL, Limits: Limits{Bytes: 1000}, UserAgent: "test"}).Call(t.Context(), "m")
			if test.status == 0 && test.want == "" {
				if err != nil || got != "ok" {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 500 {
				t.Errorf("got %v, want %q", err, test.want)
			}
			var e *HTTPError
			if errors.As(err, &e) != (test.status != 0) || test.status != 0 && e.Status != test.status {
				t.Errorf("got %#v", err)
			}
		})
	}
}
