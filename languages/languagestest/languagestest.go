// Package languagestest is the conformance test of request languages: what the
// rest of Croft counts on, whatever the language.
package languagestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"croft/languages"
	"croft/request"
	"croft/urn"
)

// Documents are what a language is tested with.
type Documents struct {
	// Good are documents that compile within Scope, by name.
	Good map[string][]byte

	// Bad are documents of the language with a mistake, by name: Compile
	// returns an *languages.Error that says where.
	Bad map[string][]byte

	// Unknown are documents of a version, or of a kind, that the language does
	// not read: Compile returns an *languages.UnknownVersion. A language that
	// has no versions to tell apart has none.
	Unknown map[string][]byte

	// Foreign are documents that other languages are to have: Detect does not
	// claim them.
	Foreign map[string][]byte

	// Scope is that of Good and Bad. A zero Scope is one of an aggregate of the
	// authority example.org.
	Scope languages.Scope
}

// Test runs the conformance test.
func Test(t *testing.T, language languages.Language, d Documents) {
	if len(d.Scope.Managers) == 0 {
		d.Scope.Managers = []urn.URN{
			urn.MustParse("urn:publicid:IDN+example.org+authority+cm"),
			urn.MustParse("urn:publicid:IDN+example.org+authority+am"),
		}
	}
	s := &suite{language, d}
	t.Run("Names", s.names)
	t.Run("Good", func(t *testing.T) { each(t, d.Good, s.good) })
	t.Run("Bad", func(t *testing.T) { each(t, d.Bad, s.bad) })
	if len(d.Unknown) > 0 {
		t.Run("Unknown", func(t *testing.T) { each(t, d.Unknown, s.unknown) })
	}
	t.Run("Foreign", func(t *testing.T) { each(t, d.Foreign, s.foreign) })
	t.Run("Broken", s.broken)
	t.Run("Cancelled", s.cancelled)
	t.Run("AtOnce", s.atOnce)
}

func each(t *testing.T, documents map[string][]byte, test func(*testing.T, []byte)) {
	if len(documents) == 0 {
		t.Error("no document to test with")
	}
	for name, document := range documents {
		t.Run(name, func(t *testing.T) { test(t, document) })
	}
}

type suite struct {
	languages.Language
	Documents
}

func (s *suite) compile(document []byte) (*languages.Compiled, error) {
	return s.Compile(context.Background(), document, s.Scope)
}

// names checks what the language says of itself.
func (s *suite) names(t *testing.T) {
	versions := s.Versions()
	if len(versions) == 0 {
		t.Error("no version")
	}
	for i, v := range versions {
		if v.Type == "" || v.Version == "" {
			t.Errorf("version %d has no type or version: %+v", i, v)
		}
		for _, w := range versions[:i] {
			if v.Is(w.Type, w.Version) {
				t.Errorf("version %s %s is listed twice", v.Type, v.Version)
			}
		}
	}
	if s.MediaType() == "" {
		t.Error("no media type")
	}
	versions[0].Type = "changed"
	if s.Versions()[0].Type == "changed" {
		t.Error("a caller can change the language's versions")
	}
}

// good checks that a document is understood, the same every time, and makes a
// request that hangs together.
func (s *suite) good(t *testing.T, document []byte) {
	if !s.Detect(document) {
		t.Error("not detected")
	}
	before := bytes.Clone(document)
	compiled, err := s.compile(document)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	again, err := s.compile(document)
	if err != nil || !reflect.DeepEqual(compiled, again) {
		t.Errorf("the second Compile differs: %v", err)
	}
	if !bytes.Equal(document, before) {
		t.Error("the document was changed")
	}
	offered := false
	for _, v := range s.Versions() {
		offered = offered || v.Is(compiled.Version.Type, compiled.Version.Version)
	}
	if !offered {
		t.Errorf("version %s %s is not one of the language", compiled.Version.Type, compiled.Version.Version)
	}
	if compiled.Request == nil {
		t.Fatal("no request")
	}
	for _, w := range compiled.Warnings {
		if w.What == "" {
			t.Errorf("warning that says nothing: %+v", w)
		}
	}
	s.whole(t, compiled.Request)
}

// whole checks that a request hangs together: names are given once, and links
// join what there is.
func (s *suite) whole(t *testing.T, r *request.Request) {
	interfaces := map[[2]request.ClientID]bool{}
	nodes := map[request.ClientID]bool{}
	for _, n := range r.Nodes {
		if n.ID == "" || nodes[n.ID] {
			t.Errorf("node %q: no name, or that of another node", n.ID)
		}
		nodes[n.ID] = true
		placed(t, fmt.Sprintf("node %q", n.ID), n.Place)
		if !n.Image.IsZero() {
			placed(t, fmt.Sprintf("image of node %q", n.ID), n.Image.Place)
		}
		for _, i := range n.Interfaces {
			key := [2]request.ClientID{n.ID, i.ID}
			if i.ID == "" || interfaces[key] {
				t.Errorf("interface %q of node %q: no name, or that of another interface", i.ID, n.ID)
			}
			interfaces[key] = true
			placed(t, fmt.Sprintf("interface %q", i.ID), i.Place)
			for _, a := range i.Addresses {
				if !a.IsValid() {
					t.Errorf("interface %q has an address that is none", i.ID)
				}
			}
		}
	}
	for _, n := range s.Scope.Existing {
		for _, i := range n.Interfaces {
			interfaces[[2]request.ClientID{n.Node, i}] = true
		}
	}
	links := map[request.ClientID]bool{}
	taken := map[[2]request.ClientID]bool{}
	for _, l := range r.Links {
		if l.ID == "" || links[l.ID] {
			t.Errorf("link %q: no name, or that of another link", l.ID)
		}
		links[l.ID] = true
		placed(t, fmt.Sprintf("link %q", l.ID), l.Place)
		ends := map[request.ClientID]bool{"": true}
		for _, e := range l.Ends {
			key := [2]request.ClientID{e.Node, e.Interface}
			if !interfaces[key] {
				t.Errorf("link %q joins interface %q of node %q, which there is not", l.ID, e.Interface, e.Node)
			}
			if taken[key] {
				t.Errorf("interface %q of node %q is joined twice", e.Interface, e.Node)
			}
			if e.Existing == nodes[e.Node] {
				t.Errorf("link %q: Existing of node %q is %v", l.ID, e.Node, e.Existing)
			}
			taken[key], ends[e.Interface] = true, true
		}
		for _, p := range l.Properties {
			if !(p.Capacity >= 0 && p.LatencyMs >= 0 && p.Loss >= 0 && p.Loss <= 100) {
				t.Errorf("link %q: property %+v", l.ID, p)
			}
			if !ends[p.From] || !ends[p.To] {
				t.Errorf("link %q: property from %q to %q, which it does not join", l.ID, p.From, p.To)
			}
		}
	}
}

func placed(t *testing.T, what string, p request.Place) {
	t.Helper()
	if p.Line < 1 && p.Path == "" {
		t.Errorf("%s has no place", what)
	}
}

// bad checks that a mistake is told, with its place.
func (s *suite) bad(t *testing.T, document []byte) {
	if !s.Detect(document) {
		t.Error("not detected: the author would not be told what is wrong")
	}
	compiled, err := s.compile(document)
	var wrong *languages.Error
	if !errors.As(err, &wrong) {
		t.Fatalf("Compile: %v, want an *Error", err)
	}
	if compiled != nil {
		t.Error("something compiled beside an error")
	}
	if len(wrong.Problems) == 0 {
		t.Error("no problem in the error")
	}
	for _, p := range wrong.Problems {
		if p.What == "" || p.Place.Line < 1 && p.Place.Path == "" {
			t.Errorf("problem without words or place: %+v", p)
		}
	}
}

// unknown checks that a version that is not read is named, with those that
// are.
func (s *suite) unknown(t *testing.T, document []byte) {
	_, err := s.compile(document)
	var unknown *languages.UnknownVersion
	if !errors.As(err, &unknown) {
		t.Fatalf("Compile: %v, want an *UnknownVersion", err)
	}
	if unknown.Found == "" || len(unknown.Offered) == 0 {
		t.Errorf("does not say what was found and what is offered: %+v", unknown)
	}
}

func (s *suite) foreign(t *testing.T, document []byte) {
	if s.Detect(document) {
		t.Error("claimed, though it is another language's")
	}
}

// broken checks that documents cut short, with bytes changed, or of nothing in
// particular give an error or a request that hangs together, and never more.
func (s *suite) broken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	try := func(name string, document []byte) {
		s.Detect(document)
		compiled, err := s.compile(document)
		var wrong *languages.Error
		var unknown *languages.UnknownVersion
		switch {
		case err == nil && compiled != nil && compiled.Request != nil:
			t.Run(name, func(t *testing.T) { s.whole(t, compiled.Request) })
		case !errors.As(err, &wrong) && !errors.As(err, &unknown):
			t.Errorf("%s: error of another kind: %v", name, err)
		}
	}
	for _, nothing := range [][]byte{nil, {}, {0}, []byte(" \n\t"), []byte("\xff\xfe"), []byte("\ufeff"), bytes.Repeat([]byte("<"), 1000), bytes.Repeat([]byte("["), 1000), bytes.Repeat([]byte("{a: "), 1000)} {
		try(fmt.Sprintf("%.8q", nothing), nothing)
	}
	for name, document := range s.Good {
		for range 40 {
			try(name+" cut", document[:r.IntN(len(document)+1)])
			changed := bytes.Clone(document)
			for range 1 + r.IntN(4) {
				if len(changed) > 0 {
					changed[r.IntN(len(changed))] = byte(r.IntN(256))
				}
			}
			try(name+" changed", changed)
		}
	}
}

func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, document := range s.Good {
		if _, err := s.Compile(ctx, document, s.Scope); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context", name, err)
		}
	}
}

// atOnce checks that many callers can use the language; the race detector
// sees what they share.
func (s *suite) atOnce(t *testing.T) {
	var wait sync.WaitGroup
	for range 4 {
		for name, document := range s.Good {
			wait.Go(func() {
				if _, err := s.compile(document); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wait.Wait()
}
