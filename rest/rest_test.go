package rest_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/rest"
)

func TestHandler(t *testing.T) {
	var log bytes.Buffer
	face := http.NewServeMux()
	face.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		text, err := rest.Body(r)
		if err != nil {
			status, what := rest.Explain(w, err)
			http.Error(w, what, status)
			return
		}
		_, _ = w.Write(text)
	})
	face.HandleFunc("/broken", func(http.ResponseWriter, *http.Request) { panic("a mistake") })
	s := httptest.NewServer(rest.Handler(rest.Config{
		Faces: map[string]http.Handler{"/face": face}, Clock: time.Now, BodyBytes: 100, Concurrent: 2,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}))
	defer s.Close()
	for _, test := range []struct {
		path, body string
		status     int
		answer     string
	}{
		{"/face/echo", "hello", http.StatusOK, "hello"},
		{"/face/echo?secret=hidden", strings.Repeat("x", 101), http.StatusRequestEntityTooLarge, "100 bytes"},
		{"/face/broken", "", http.StatusInternalServerError, "mistake"},
		{"/face/none", "", http.StatusNotFound, ""},
		{"/other", "", http.StatusNotFound, "/face"},
	} {
		r, err := http.Post(s.URL+test.path, "text/plain", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != test.status || !strings.Contains(string(answer), test.answer) {
			t.Errorf("%s: %d %s", test.path, r.StatusCode, answer)
		}
	}
	if !strings.Contains(log.String(), "path=/echo") && !strings.Contains(log.String(), "path=/face/echo") {
		t.Errorf("no call in the log:\n%s", log.String())
	}
	if strings.Contains(log.String(), "hidden") {
		t.Error("the log has the query")
	}
}

func TestRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "im")
	r, err := rest.OpenRecords(dir)
	if err != nil {
		t.Fatal(err)
	}
	type thing struct{ Name string }
	for _, bad := range []string{"", "..", "a/b", "A", "x y", "-x", strings.Repeat("x", 100)} {
		if err := r.Put("u-alice", bad, thing{"x"}); err == nil {
			t.Errorf("a record called %q was written", bad)
		}
		if err := r.Get(bad, "one", &thing{}); !errors.Is(err, rest.ErrNoRecord) {
			t.Errorf("a record of %q: %v", bad, err)
		}
	}
	for _, name := range []string{"two", "one", "one"} {
		if err := r.Put("u-alice", name, thing{name}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := rest.OpenRecords(dir)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := again.List("u-alice"); err != nil || strings.Join(names, " ") != "one two" {
		t.Errorf("records %v, %v", names, err)
	}
	if names, err := again.List("u-bob"); err != nil || len(names) != 0 {
		t.Errorf("another's records %v, %v", names, err)
	}
	var got thing
	if err := again.Get("u-alice", "one", &got); err != nil || got.Name != "one" {
		t.Errorf("%v, %v", got, err)
	}
	for range 2 {
		if err := again.Delete("u-alice", "one"); err != nil {
			t.Error(err)
		}
	}
	if err := again.Get("u-alice", "one", &got); !errors.Is(err, rest.ErrNoRecord) {
		t.Errorf("after its deletion: %v", err)
	}
}
