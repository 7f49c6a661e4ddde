// Package resttest holds the tests of REST faces to the descriptions of their
// APIs: what a face answers has to be what its OpenAPI document says, and what
// it takes, too.
package resttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Checker is an http.RoundTripper that checks each exchange below Prefix, and
// reports what is not as described to T.
type Checker struct {
	T      testing.TB
	Next   http.RoundTripper
	Prefix string
	// Also checks more of an answer that is as described; nil for nothing.
	Also func(r *http.Request, status int, body []byte) error

	Document *openapi3.T
	router   routers.Router
}

// New makes a Checker of a description in JSON.
func New(t testing.TB, description []byte, prefix string, next http.RoundTripper) *Checker {
	t.Helper()
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData(description)
	if err == nil {
		err = document.Validate(loader.Context)
	}
	if err != nil {
		t.Fatalf("the description of the API: %v", err)
	}
	document.Servers = nil // tests have addresses of their own
	router, err := legacy.NewRouter(document)
	if err != nil {
		t.Fatalf("the description of the API: %v", err)
	}
	return &Checker{T: t, Next: next, Prefix: prefix, Document: document, router: router}
}

// opaque reads bodies that a schema says nothing about.
func opaque(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	text, err := io.ReadAll(body)
	return string(text), err
}

// RoundTrip makes a request and checks it and its answer.
func (c *Checker) RoundTrip(r *http.Request) (*http.Response, error) {
	path, below := strings.CutPrefix(r.URL.Path, c.Prefix)
	if !below {
		return c.Next.RoundTrip(r)
	}
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answer, err := c.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	described := r.Clone(context.WithoutCancel(r.Context()))
	described.URL.Path, described.URL.RawPath = path, ""
	described.Body = io.NopCloser(bytes.NewReader(sent))
	route, parameters, err := c.router.FindRoute(described)
	if err != nil {
		if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed && answer.StatusCode != http.StatusUnauthorized {
			c.T.Errorf("%s %s is not in the description of the API, and answers %s: %v", r.Method, r.URL.Path, answer.Status, err)
		}
		return answer, nil
	}
	if route.Operation.Extensions["x-stream"] == true && answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return answer, nil // the test sees it, too
	}
	if err := c.check(described, route, parameters, answer, body); err != nil {
		c.T.Errorf("%s %s is not as described: %v", r.Method, r.URL.Path, err)
	}
	return answer, nil
}

func (c *Checker) check(r *http.Request, route *routers.Route, parameters map[string]string, answer *http.Response, body []byte) error {
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}
	request := &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: options}
	if answer.StatusCode/100 == 2 { // what is taken has to be what may be sent
		whole := *options
		whole.ExcludeRequestBody = route.Operation.RequestBody == nil || r.Header.Get("Content-Type") == ""
		request.Options = &whole
		if err := openapi3filter.ValidateRequest(r.Context(), request); err != nil {
			return errors.Join(errors.New("the request"), err)
		}
		request.Options = options
	}
	input := &openapi3filter.ResponseValidationInput{RequestValidationInput: request, Status: answer.StatusCode, Header: answer.Header, Options: options}
	input.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(r.Context(), input); err != nil {
		return err
	}
	if c.Also != nil {
		return c.Also(r, answer.StatusCode, body)
	}
	return nil
}

// Decode teaches the checks to pass over bodies of media types that they do not
// know. It is for TestMain, as it is for the whole process.
func Decode() {
	for _, t := range []string{"text/uri-list", "text/radl", "text/yaml", "text/x-yaml", "application/x-tar", "application/gzip", "application/x-gzip",
		"application/x-gtar", "application/tar", "application/yaml", "application/x-yaml", "application/zip"} {
		openapi3filter.RegisterBodyDecoder(t, opaque)
	}
	openapi3filter.RegisterBodyDecoder("application/json-patch", openapi3filter.RegisteredBodyDecoder("application/json"))
}
