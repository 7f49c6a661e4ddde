package startup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/startup/archive"
)

// Fetcher gets archives and bounds them. The zero Fetcher works.
type Fetcher struct {
	Limits archive.Limits
	// Redirects is how many are followed; 0: 5.
	Redirects int
	// Dir keeps zips while they are unpacked; "" is the system's own place.
	Dir string
	// Forbidden says why an address may not be fetched from, beside those that
	// nobody may (loopback, link-local, …); nil for none.
	Forbidden func(netip.Addr) (why string)
	// Lookup finds the addresses of a name that the node's hosts file does not
	// have; nil asks the manager's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

const (
	usualRedirects = 5
	// answerTime bounds how long a server may take to begin to answer.
	answerTime = time.Minute
	// maxHosts bounds what is read of a node's hosts file.
	maxHosts = 1 << 20
)

// Refusal says why an install was not done; trying again would not mend it.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(format string, args ...any) error { return &Refusal{fmt.Errorf(format, args...)} }

// Install fetches an archive from inside the node and unpacks it there, for an
// account. It returns what was done, for the step's output.
func (n Node) Install(ctx context.Context, f Fetcher, i *request.Install, account string) (string, error) {
	as, err := n.worker(account)
	if err != nil {
		return "", err
	}
	owner, err := n.owner(ctx, account)
	if err != nil {
		return "", err
	}
	from, body, err := n.source(ctx, f, i, as)
	if err != nil {
		return "", err
	}
	defer body.Close()
	sum, err := n.unpack(ctx, f, body, i.Path, owner, as)
	if err != nil {
		var bad *archive.Error
		if errors.As(err, &bad) {
			err = &Refusal{err}
		}
		return "", fmt.Errorf("installing %s: %w", from, err)
	}
	return fmt.Sprintf("%s: %s of %d bytes; %d entries, %d bytes, unpacked in %s\n", from, sum.Format, sum.Bytes, sum.Entries, sum.Size, i.Path), nil
}

// source opens an archive and says where it is from.
func (n Node) source(ctx context.Context, f Fetcher, i *request.Install, as string) (from string, body io.ReadCloser, err error) {
	if i.Content != nil {
		from = i.URL
		if from == "" {
			from = "archive"
		}
		return from, io.NopCloser(bytes.NewReader(i.Content)), nil
	}
	u, err := url.Parse(i.URL)
	if err != nil {
		return "", nil, refuse("URL %q: %w", i.URL, err)
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return n.fetch(ctx, f, u)
	case "file":
		if u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") {
			return "", nil, refuse("URL %q: want file:///path, a file of the node", i.URL)
		}
		return u.Path, n.file(ctx, u.Path, as), nil
	}
	return "", nil, refuse("URL %q: want http, https or file", i.URL)
}

// file reads a file of the node.
func (n Node) file(ctx context.Context, path, as string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		said := &limited{most: complaint}
		err := n.Driver.Exec(ctx, n.Sliver, drivers.Command{User: as, Args: []string{"cat", "--", path}, Stdout: w, Stderr: said})
		if _, failed := Failed(err); failed {
			err = refuse("reading %s in the node: %s", path, strings.TrimSpace(said.String()))
		}
		w.CloseWithError(err)
	}()
	return r
}

// fetch asks a server for an archive. Connections come from inside the node.
func (n Node) fetch(ctx context.Context, f Fetcher, u *url.URL) (string, io.ReadCloser, error) {
	hosts, err := n.hosts(ctx)
	if err != nil {
		return "", nil, err
	}
	most := f.Redirects
	if most == 0 {
		most = usualRedirects
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return n.dial(ctx, f, hosts, network, address)
		},
		DisableKeepAlives: true, TLSHandshakeTimeout: answerTime, ResponseHeaderTimeout: answerTime,
		DisableCompression: true, // an archive is what it is
	}
	client := &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > most:
				return refuse("more than %d redirects", most)
			case r.URL.Scheme != "http" && r.URL.Scheme != "https":
				return refuse("a redirect to %q", r.URL.Redacted())
			}
			return nil
		},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", nil, refuse("URL %q: %w", u.Redacted(), err)
	}
	r.Header.Set("User-Agent", "croft")
	reply, err := client.Do(r)
	if err != nil {
		return "", nil, fmt.Errorf("fetching: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		reply.Body.Close()
		err := fmt.Errorf("fetching %s: the server says %s", reply.Request.URL.Redacted(), reply.Status)
		if reply.StatusCode < 500 {
			err = &Refusal{err}
		}
		return "", nil, err
	}
	return reply.Request.URL.Redacted(), reply.Body, nil
}

// dial connects to a server from inside the node, at an address that may be
// reached. Every connection comes by here, those of redirects, too.
func (n Node) dial(ctx context.Context, f Fetcher, hosts map[string][]netip.Addr, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refuse("address %q: %w", address, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, refuse("port %q", port)
	}
	addresses, err := f.resolve(ctx, hosts, host)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, a := range addresses {
		if why := f.forbidden(a); why != "" {
			failed = append(failed, refuse("%s (%s) may not be fetched from: it is %s", host, a, why))
			continue
		}
		c, err := n.Driver.Dial(ctx, n.Sliver, network, netip.AddrPortFrom(a, uint16(number)).String())
		if err == nil {
			return c, nil
		}
		failed = append(failed, fmt.Errorf("%w (the node itself must reach it: it reaches its links, and what its driver connects it to)", err))
	}
	return nil, errors.Join(failed...)
}

func (f Fetcher) resolve(ctx context.Context, hosts map[string][]netip.Addr, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap().WithZone("")}, nil
	}
	if list := hosts[strings.ToLower(strings.TrimSuffix(host, "."))]; len(list) > 0 {
		return list, nil
	}
	lookup := f.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	list, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", host, err)
	}
	const most = 16
	list = list[:min(len(list), most)]
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, nil
}

// special are the networks that no archive comes from.
var special = []struct {
	net netip.Prefix
	why string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "of this network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/96"), "loopback or unspecified"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a translation of IPv4"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translation of IPv4"},
	{netip.MustParsePrefix("2002::/16"), "a translation of IPv4"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// forbidden says why an address may not be reached; "" if it may.
func (f Fetcher) forbidden(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	for _, s := range special {
		if s.net.Contains(a) {
			return s.why
		}
	}
	if f.Forbidden != nil {
		return f.Forbidden(a)
	}
	return ""
}

// hosts reads the hosts file of the node: names to addresses.
func (n Node) hosts(ctx context.Context) (map[string][]netip.Addr, error) {
	text := &limited{most: maxHosts}
	err := n.Driver.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"cat", "/etc/hosts"}, Stdout: text})
	if _, failed := Failed(err); err != nil && !failed {
		return nil, fmt.Errorf("reading the hosts file: %w", err)
	}
	return parseHosts(text.String()), nil
}

func parseHosts(text string) map[string][]netip.Addr {
	hosts := map[string][]netip.Addr{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		a, err := netip.ParseAddr(words[0])
		if err != nil {
			continue
		}
		for _, name := range words[1:] {
			name = strings.ToLower(name)
			hosts[name] = append(hosts[name], a.Unmap().WithZone(""))
		}
	}
	return hosts
}

// owner finds the numbers of an account.
func (n Node) owner(ctx context.Context, account string) (archive.Owner, error) {
	if account == Root {
		return archive.Owner{}, nil
	}
	out := &limited{most: complaint}
	if err := n.script(ctx, `id -u "$1" && id -g "$1"`, nil, out, account); err != nil {
		return archive.Owner{}, fmt.Errorf("looking up account %s: %w", account, err)
	}
	var o archive.Owner
	if _, err := fmt.Sscan(out.String(), &o.UID, &o.GID); err != nil || o.UID < 0 || o.GID < 0 {
		return archive.Owner{}, fmt.Errorf("looking up account %s: the node says %.100q", account, out.String())
	}
	return o, nil
}

// unpackScript unpacks a plain tar from standard input into a directory.
// Arguments: the directory, uid and gid of whom it belongs to if it is made.
const unpackScript = `command -v tar >/dev/null || { echo "the node's image has no tar"; exit 127; } >&2
case $1 in "~" | "~/"*)
	while IFS=: read -r _ _ uid _ _ home _; do
		[ "$uid" = "$2" ] && break
	done < /etc/passwd
	set -- "$home${1#"~"}" "$2" "$3"
esac
[ -d "$1" ] || { mkdir -p "$1" && chown "$2:$3" "$1"; } || exit
exec tar -x -f - -C "$1" -p`

// unpack writes what is in an archive into a directory of the node.
func (n Node) unpack(ctx context.Context, f Fetcher, from io.Reader, dir string, owner archive.Owner, as string) (archive.Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	type converted struct {
		sum archive.Summary
		err error
	}
	done := make(chan converted, 1)
	go func() {
		sum, err := archive.Convert(w, from, owner, f.Limits, f.Dir)
		if err != nil {
			cancel() // a part of an archive is not to be taken for the whole
		}
		w.CloseWithError(err)
		done <- converted{sum, err}
	}()
	err := n.scriptAs(ctx, as, unpackScript, r, nil, dir, strconv.Itoa(owner.UID), strconv.Itoa(owner.GID))
	r.CloseWithError(errUnpackEnded)
	c := <-done
	switch {
	case c.err != nil && !errors.Is(c.err, errUnpackEnded):
		return c.sum, c.err
	case err != nil:
		if _, failed := Failed(err); failed {
			err = &Refusal{fmt.Errorf("unpacking in %s: %w", dir, err)}
		}
		return c.sum, err
	case c.err != nil:
		return c.sum, fmt.Errorf("unpacking in %s: %w", dir, c.err)
	}
	return c.sum, nil
}

var errUnpackEnded = errors.New("tar in the node ended before the archive did")
