package zoe_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCalls goes through the life of an execution.
func TestCalls(t *testing.T) {
	b := newBed(t, false)
	if a := b.as("", http.MethodGet, "/info", ""); a.status != http.StatusOK || a.object["api_version"] != "0.7" || a.object["deployment_name"] != "example.org" {
		t.Errorf("info: %d %s", a.status, a.text)
	}
	id := b.submit(app(1, 2, 7))
	if e := b.show(id); e["status"] != "submitted" || e["time_start"] != nil || e["size"] != 7.0 || e["name"] != "mine" || e["time_submit"].(float64) < 1e9 {
		t.Errorf("submitted: %v", e)
	}
	b.untilStatus(id, "running")
	b.untilServices(id, "active", "active")
	e := b.show(id)
	if e["time_start"] == nil || e["time_end"] != nil || e["description"].(map[string]any)["name"] != "app" {
		t.Errorf("running: %v", e)
	}
	first := e["services"].([]any)[0]
	s := b.want(http.StatusOK, http.MethodGet, fmt.Sprintf("/service/%v", first), "").object
	for name, want := range map[string]any{"name": "web0", "backend_status": "started", "essential": true, "service_group": "web", "backend_host": "host1", "execution_id": float64(id)} {
		if s[name] != want {
			t.Errorf("service: %s is %v, want %v", name, s[name], want)
		}
	}
	if d := s["description"].(map[string]any); d["monitor"] != true || d["ports"].([]any)[0].(map[string]any)["path"] != "" {
		t.Errorf("service: description %v", d)
	}
	if a := b.want(http.StatusOK, http.MethodGet, fmt.Sprintf("/execution/endpoints/%d", id), ""); string(a.text) != "{\"endpoints\":[]}\n" {
		t.Errorf("endpoints of nodes that nobody reaches: %s", a.text)
	}
	a := b.want(http.StatusOK, http.MethodGet, "/statistics/scheduler", "")
	for _, key := range []string{"queue_length", "running_length", "termination_queue_length", "termination_threads_count", "queue", "running_queue", "termination_queue"} {
		if a.object[key] == nil {
			t.Errorf("statistics: no %s in %s", key, a.text)
		}
	}
	if a.object["running_length"] != 1.0 {
		t.Errorf("statistics: %s", a.text)
	}
	b.want(http.StatusBadRequest, http.MethodDelete, fmt.Sprintf("/execution/delete/%d", id), "")
	b.want(http.StatusNoContent, http.MethodDelete, fmt.Sprintf("/execution/%d", id), "")
	b.untilStatus(id, "terminated")
	if left, err := b.service.Slivers(t.Context(), slice(id)); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := b.services(id); !slices.Equal(got, []string{"inactive", "inactive"}) {
		t.Errorf("services that have ended: %v", got)
	}
	if b.show(id)["time_end"] == nil {
		t.Error("no time of its end")
	}
	b.want(http.StatusBadRequest, http.MethodDelete, fmt.Sprintf("/execution/%d", id), "")
	b.want(http.StatusNoContent, http.MethodDelete, fmt.Sprintf("/execution/delete/%d", id), "")
	b.want(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/execution/%d", id), "")
	b.want(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/service/%v", first), "")
	// No number is given twice, also by a server that starts anew.
	b.restart()
	if again := b.submit(app(1, 1, 7)); again != id+1 || b.show(again)["services"].([]any)[0] == first {
		t.Errorf("after %d comes %d: %v", id, again, b.show(again))
	}
}

// TestRefusals are told as both clients read them: in the reason phrase and as
// a message.
func TestRefusals(t *testing.T) {
	b := newBed(t, false)
	id := b.submit(app(1, 1, 1))
	post := func(application string) string { return `{"name": "mine", "application": ` + application + `}` }
	for _, x := range []struct {
		name, who, method, path, body string
		status                        int
		says                          string
	}{
		{"nobody", "", "GET", "/execution", "", 401, "no user and password"},
		{"an unknown user", "carol", "GET", "/execution", "", 401, "wrong user"},
		{"no JSON", "alice", "POST", "/execution", "{", 400, "Error decoding JSON data"},
		{"no name", "alice", "POST", "/execution", `{"application": ` + app(1, 1, 1) + `}`, 400, "an execution has a name"},
		{"a wrong ZApp", "alice", "POST", "/execution", post(strings.Replace(app(1, 1, 1), `"monitor": true`, `"monitor": 1`, 1)), 400, "/services/0/monitor"},
		{"no ZApp", "alice", "POST", "/execution", `{"name": "mine"}`, 400, "Invalid application description"},
		{"an unknown image", "alice", "POST", "/execution", post(strings.Replace(app(1, 1, 1), "zapps/web", "zapps/wep", 1)), 400, "no image"},
		{"an image that says not what it runs", "alice", "POST", "/execution", post(strings.Replace(app(1, 1, 1), "registry:5000/zapps/web:1", "mute", 1)), 400, "image mute declares none"},
		{"an unknown variable", "alice", "POST", "/execution", post(strings.Replace(app(1, 1, 1), "{execution_id}", "{nobody}", 1)), 400, "a variable {nobody}"},
		{"more than there is", "alice", "POST", "/execution", post(app(5, 5, 1)), 400, "even if nothing else did"},
		{"validation", "alice", "POST", "/zapp_validate", `{"version": 3}`, 400, "Invalid application description"},
		{"no such execution", "alice", "GET", "/execution/99", "", 404, "No such execution"},
		{"no number", "alice", "GET", "/execution/x", "", 404, "no number"},
		{"no such service", "alice", "GET", "/service/99", "", 404, "No such service"},
		{"no such log", "alice", "GET", "/service/logs/99", "", 404, "No such service"},
		{"no such call", "alice", "GET", "/nothing", "", 404, "no such call"},
		{"somebody else's", "bob", "GET", fmt.Sprintf("/execution/%d", id), "", 404, "No such execution"},
		{"somebody else's end", "bob", "DELETE", fmt.Sprintf("/execution/%d", id), "", 404, "No such execution"},
		{"somebody else's endpoints", "bob", "GET", fmt.Sprintf("/execution/endpoints/%d", id), "", 404, "No such execution"},
		{"somebody else's service", "bob", "GET", "/service/1", "", 404, "No such service"},
		{"somebody else's log", "bob", "GET", "/service/logs/1", "", 404, "No such service"},
		{"a filter", "alice", "GET", "/execution?later_than_end=never", "", 400, "later_than_end"},
		{"another user", "alice", "GET", "/user/2", "", 404, "no such user"},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := b.as(x.who, x.method, x.path, x.body)
			message, _ := a.object["message"].(string)
			if a.status != x.status || !strings.Contains(message, x.says) {
				t.Errorf("%d %s, want %d and %q", a.status, a.text, x.status, x.says)
			}
			if !strings.Contains(a.reason, x.says) {
				t.Errorf("reason phrase %q", a.reason)
			}
		})
	}
	if a := b.as("bob", http.MethodGet, "/execution", ""); string(a.text) != "{}\n" {
		t.Errorf("bob sees %s", a.text)
	}
	b.want(http.StatusOK, http.MethodPost, "/zapp_validate", app(1, 1, 1))
}

// TestSessions has a client log in once and come back with the cookie alone.
func TestSessions(t *testing.T) {
	b := newBed(t, false)
	a := b.want(http.StatusOK, http.MethodGet, "/login", "")
	user := a.object["user"].(map[string]any)
	if user["username"] != "alice" || user["id"] != 1.0 || user["role"] == nil {
		t.Errorf("user %v", user)
	}
	cookie := "Cookie: " + a.header.Get("Set-Cookie") // as the client sends it: all of it
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "Secure") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Error(cookie)
	}
	if a := b.as("", http.MethodGet, "/execution?user_id=1", "", cookie); a.status != http.StatusOK {
		t.Errorf("with the cookie: %d %s", a.status, a.text)
	}
	if a := b.as("", http.MethodGet, "/execution", "", "Cookie: zoe=x"); a.status != http.StatusUnauthorized {
		t.Errorf("with a wrong cookie: %d", a.status)
	}
	for range 100 { // as many as an account may have: the first one goes
		b.want(http.StatusOK, http.MethodGet, "/login", "")
	}
	if a := b.as("", http.MethodGet, "/execution", "", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("with the oldest of too many: %d", a.status)
	}
	cookie = "Cookie: " + b.want(http.StatusOK, http.MethodGet, "/login", "").header.Get("Set-Cookie")
	b.clock.Advance(13 * time.Hour)
	if a := b.as("", http.MethodGet, "/execution", "", cookie); a.status != http.StatusUnauthorized || !contains(a.text, "log in again") {
		t.Errorf("with an old cookie: %d %s", a.status, a.text)
	}
}

// TestFilters lists some of the executions.
func TestFilters(t *testing.T) {
	b := newBed(t, false)
	begun := b.clock.Now().Unix()
	first := b.submit(app(4, 4, 1))
	b.untilStatus(first, "running")
	b.clock.Advance(time.Minute)
	b.want(http.StatusCreated, http.MethodPost, "/execution", `{"name": "other", "application": `+app(1, 1, 1)+`}`)
	b.untilStatus(2, "queued")
	for filter, want := range map[string][]string{
		"":                          {"1", "2"},
		"status=running":            {"1"},
		"status=queued":             {"2"},
		"status=scheduled":          {"2"},
		"name=other":                {"2"},
		"user_id=1&limit=1":         {"2"},
		"user_id=2":                 {},
		"status=running&name=other": {},
		"later_than_end=0":          {},
		"later_than_start=0":        {"1"},
		fmt.Sprintf("earlier_than_submit=%d", begun+30): {"1"},
		fmt.Sprintf("later_than_submit=%d", begun+30):   {"2"},
	} {
		got := []string{}
		for id := range b.want(http.StatusOK, http.MethodGet, "/execution?"+filter, "").object {
			got = append(got, id)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", filter, got, want)
		}
	}
}
