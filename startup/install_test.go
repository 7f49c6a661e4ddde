package startup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft/request"
	"croft/startup"
)

func oneFile(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lookup is a name service of a test.
func lookup(names map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		text, ok := names[host]
		if !ok {
			return nil, fmt.Errorf("no such host")
		}
		var list []netip.Addr
		for _, a := range strings.Fields(text) {
			list = append(list, netip.MustParseAddr(a))
		}
		return list, nil
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	account := me(t)
	data := oneFile(t, "f", "content")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.tar":
			w.Write(data)
		case "/moved":
			http.Redirect(w, r, "http://other.example.org/a.tar", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/inward":
			http.Redirect(w, r, "http://127.0.0.1/a.tar", http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/mapped":
			http.Redirect(w, r, "http://[::ffff:127.0.0.1]/a.tar", http.StatusFound)
		case "/rebound":
			http.Redirect(w, r, "http://rebound.example.org/a.tar", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, "file:///etc/shadow", http.StatusFound)
		case "/page":
			io.WriteString(w, "<html>not here</html>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	f := startup.Fetcher{
		Lookup: lookup(map[string]string{
			"files.example.org": "192.0.2.1", "other.example.org": "2001:db8::1", "rebound.example.org": "127.0.0.1",
			"manager.example.org": "192.0.2.9", "mixed.example.org": "10.0.0.1 127.0.0.1", "null.example.org": "0.0.0.0",
		}),
		Forbidden: func(a netip.Addr) string {
			if a == netip.MustParseAddr("192.0.2.9") {
				return "the manager's"
			}
			return ""
		},
		Dir: t.TempDir(),
	}
	own := filepath.Join(t.TempDir(), "own.tar")
	if err := os.WriteFile(own, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, says string
		content         []byte
		dials           []string
	}{
		{"http", "http://files.example.org/a.tar", "", nil, []string{"192.0.2.1:80"}},
		{"another port", "http://files.example.org:8080/a.tar", "", nil, []string{"192.0.2.1:8080"}},
		{"a literal address", "http://192.0.2.5/a.tar", "", nil, []string{"192.0.2.5:80"}},
		{"a redirect", "http://files.example.org/moved", "", nil, []string{"192.0.2.1:80", "[2001:db8::1]:80"}},
		{"content", "a.tar", "", data, nil},
		{"a file of the node", "file://" + own, "", nil, nil},
		{"a file that is not there", "file:///does/not/exist", "No such file", nil, nil},
		{"a file of another host", "file://host/x", "want file:///path", nil, nil},
		{"another scheme", "ftp://files.example.org/x", "want http, https or file", nil, nil},
		{"loopback", "http://127.0.0.1/a.tar", "loopback", nil, nil},
		{"loopback by name", "http://rebound.example.org/a.tar", "loopback", nil, nil},
		{"loopback in hexadecimal", "http://0x7f000001/a.tar", "no such host", nil, nil},
		{"loopback of IPv6", "http://[::1]/a.tar", "loopback", nil, nil},
		{"this host", "http://null.example.org/a.tar", "of this network", nil, nil},
		{"localhost", "http://localhost/a.tar", "loopback", nil, nil},
		{"link-local", "http://[fe80::1%25eth0]/a.tar", "link-local", nil, nil},
		{"IPv4 through IPv6", "http://[64:ff9b::7f00:1]/a.tar", "translation", nil, nil},
		{"the manager", "http://manager.example.org/a.tar", "the manager's", nil, nil},
		{"a redirect inwards", "http://files.example.org/inward", "loopback", nil, []string{"192.0.2.1:80"}},
		{"a redirect to metadata", "http://files.example.org/metadata", "link-local", nil, []string{"192.0.2.1:80"}},
		{"a redirect in disguise", "http://files.example.org/mapped", "loopback", nil, []string{"192.0.2.1:80"}},
		{"a redirect to a name of loopback", "http://files.example.org/rebound", "loopback", nil, []string{"192.0.2.1:80"}},
		{"a redirect to a file", "http://files.example.org/elsewhere", "a redirect to", nil, []string{"192.0.2.1:80"}},
		{"a redirect to itself", "http://files.example.org/round", "more than 5 redirects", nil, slices.Repeat([]string{"192.0.2.1:80"}, 6)},
		{"no such archive", "http://files.example.org/none", "404", nil, []string{"192.0.2.1:80"}},
		{"a web page", "http://files.example.org/page", "of no format", nil, []string{"192.0.2.1:80"}},
		{"an archive that leads out", "a.tar", "leads out", oneFile(t, "../../evil", "x"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			d := &local{to: u.Host}
			n := startup.Node{Driver: d}
			dir := filepath.Join(t.TempDir(), "new", "dir")
			_, err = n.Install(within(t), f, &request.Install{URL: c.url, Path: dir, Content: c.content}, account)
			if !slices.Equal(d.dialled, c.dials) {
				t.Errorf("dialled %q, want %q", d.dialled, c.dials)
			}
			if c.says == "" {
				if got, _ := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != "content" {
					t.Errorf("%v; installed %q", err, got)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want a refusal with %q", err, c.says)
			}
			if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) > 0 {
				t.Errorf("it left %q", list)
			}
		})
	}
	t.Run("no way from the node", func(t *testing.T) {
		n := startup.Node{Driver: &local{}}
		_, err := n.Install(within(t), f, &request.Install{URL: "http://files.example.org/a.tar", Path: t.TempDir()}, account)
		var refused *startup.Refusal
		if !errors.Is(err, errUnreachable) || errors.As(err, &refused) {
			t.Errorf("%v, want what the driver said, to be tried again", err)
		}
	})
}
