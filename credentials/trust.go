package credentials

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"croft/internal/openssl"
	"croft/urn"
)

// AnyAuthority, in TrustOptions.Limits, lets a root speak for every
// authority.
const AnyAuthority urn.Authority = "*"

// TrustOptions say how a folder of trust roots is used. The zero value is
// usable.
type TrustOptions struct {
	// Limits names, for a file of the folder ("emulab.pem"), the authorities
	// whose names its roots may certify, with their sub-authorities. Roots in
	// files that are not named here are limited to the authority in the URN
	// of their own certificate; such a root without a URN certifies nothing.
	Limits map[string][]urn.Authority
	// RefuseSHA1 refuses certificates and credentials signed with SHA-1.
	RefuseSHA1 bool
	// MinRSABits is the smallest RSA key that counts; 0 is 2048.
	MinRSABits int
	// Callers are the types of URN that may call; nil is users and tools.
	Callers []urn.Type
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// CheckEvery is how long the folder's content is relied on before it is
	// looked at again; 0 is one second.
	CheckEvery time.Duration
	// Logger hears of changes and of files that cannot be read; nil is none.
	Logger *slog.Logger
}

// Trust is a folder of trust roots and revocation lists: every *.pem file in
// it counts. Changes are picked up while it is used. It is safe for parallel
// use.
type Trust struct {
	dir     string
	options TrustOptions

	mu      sync.Mutex
	checked time.Time
	files   map[string]trustFile
	now     *anchors
	callers *cache[*Caller]
	// parsed are certificates by the digest of their DER: the authorities'
	// come again in every credential, and OpenSSL takes its time over a key.
	parsed *cache[*openssl.Certificate]
}

// trustFile is one file of the folder as it was last read.
type trustFile struct {
	digest [sha256.Size]byte
	roots  []*openssl.Certificate
	crls   []*openssl.CRL
}

// anchors are the trust roots at one time. They are never changed.
type anchors struct {
	generation uint64
	roots      []*openssl.Certificate
	limits     map[[32]byte]limit
	crls       []*openssl.CRL
}

// OpenTrust reads a folder of trust roots. A file in it that cannot be read
// is an error; later on such a file is logged, and what it said before stays
// in force until it can be read again or is removed.
func OpenTrust(dir string, options TrustOptions) (*Trust, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.CheckEvery <= 0 {
		options.CheckEvery = time.Second
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.MinRSABits <= 0 {
		options.MinRSABits = 2048
	}
	if options.Callers == nil {
		options.Callers = []urn.Type{urn.User, urn.Tool}
	}
	t := &Trust{dir: dir, options: options, callers: newCache[*Caller](4096), parsed: newCache[*openssl.Certificate](1024)}
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("open the trust roots in %s: %w", dir, err)
	}
	t.checked = options.Now()
	for name := range options.Limits {
		if _, ok := t.files[name]; !ok {
			options.Logger.Warn("limits name a trust root that is not there", "file", filepath.Join(dir, name))
		}
	}
	return t, nil
}

// Roots returns the trust roots that are in force, for TLS.
func (t *Trust) Roots() []*openssl.Certificate { return slices.Clone(t.current().roots) }

// CRLs returns the revocation lists that are in force, for TLS.
func (t *Trust) CRLs() []*openssl.CRL { return slices.Clone(t.current().crls) }

// current returns the anchors, after a look at the folder if the last one was
// long enough ago.
func (t *Trust) current() *anchors {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.options.Now()
	if since := now.Sub(t.checked); since >= t.options.CheckEvery || since < 0 {
		t.checked = now
		if err := t.load(); err != nil {
			t.options.Logger.Error("trust roots stay as they were", "dir", t.dir, "err", err)
		}
	}
	return t.now
}

// maxTrustFile bounds one file: a long revocation list has some megabytes.
const maxTrustFile = 32 << 20

// load reads what has changed. With nothing loaded yet, any file that cannot
// be read is an error.
func (t *Trust) load() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	first := t.now == nil
	files := map[string]trustFile{}
	changed := first
	for _, entry := range entries {
		name := entry.Name()
		if !strings.EqualFold(filepath.Ext(name), ".pem") || strings.HasPrefix(name, ".") {
			continue
		}
		before, known := t.files[name]
		file, err := readTrustFile(filepath.Join(t.dir, name), before)
		switch {
		case errors.Is(err, os.ErrNotExist): // removed a moment ago
			continue
		case err != nil && first:
			return err
		case err != nil:
			t.options.Logger.Error("trust root cannot be read", "file", filepath.Join(t.dir, name), "err", err, "earlier content stays", known)
			if !known {
				continue
			}
			file = before
		}
		changed = changed || !known || file.digest != before.digest
		files[name] = file
	}
	changed = changed || len(files) != len(t.files)
	if !changed {
		return nil
	}
	next := &anchors{generation: 1, limits: map[[32]byte]limit{}}
	if !first {
		next.generation = t.now.generation + 1
	}
	for name, file := range files {
		named, explicit := t.options.Limits[name]
		for _, root := range file.roots {
			before, twice := next.limits[root.Fingerprint]
			if !twice {
				next.roots = append(next.roots, root)
			}
			next.limits[root.Fingerprint] = before.or(limitOf(root, named, explicit))
		}
		next.crls = append(next.crls, file.crls...)
	}
	t.files, t.now = files, next
	t.options.Logger.Info("trust roots read", "dir", t.dir, "roots", len(next.roots), "revocation lists", len(next.crls))
	return nil
}

// readTrustFile reads a PEM file, or returns before if its content is the
// same.
func readTrustFile(path string, before trustFile) (trustFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return trustFile{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTrustFile+1))
	if err != nil {
		return trustFile{}, err
	}
	if len(data) > maxTrustFile {
		return trustFile{}, fmt.Errorf("%s: longer than %d bytes", path, maxTrustFile)
	}
	file := trustFile{digest: sha256.Sum256(data)}
	if file.digest == before.digest {
		return before, nil
	}
	if bytes.Contains(data, []byte("-----BEGIN CERTIFICATE-----")) {
		if file.roots, err = openssl.ParsePEM(data); err != nil {
			return trustFile{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	if bytes.Contains(data, []byte("-----BEGIN X509 CRL-----")) {
		if file.crls, err = openssl.ParseCRLs(data); err != nil {
			return trustFile{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(file.roots) == 0 && len(file.crls) == 0 {
		return trustFile{}, fmt.Errorf("%s: neither a certificate nor a revocation list in it", path)
	}
	return file, nil
}

// limit is the name space that a root may speak for.
type limit struct {
	any         bool
	authorities []urn.Authority
}

func limitOf(root *openssl.Certificate, named []urn.Authority, explicit bool) limit {
	if explicit {
		return limit{any: slices.Contains(named, AnyAuthority), authorities: named}
	}
	if name, err := nameOf(root); err == nil && isAuthority(name) {
		return limit{authorities: []urn.Authority{name.Authority}}
	}
	return limit{}
}

func (l limit) or(m limit) limit {
	return limit{any: l.any || m.any, authorities: append(slices.Clone(l.authorities), m.authorities...)}
}

func (l limit) covers(a urn.Authority) bool {
	return l.any || slices.ContainsFunc(l.authorities, func(own urn.Authority) bool { return own.Covers(a) })
}

func (l limit) String() string {
	if len(l.authorities) == 0 {
		return "no authority: its certificate carries no authority's URN, and the limits in the configuration do not name its file"
	}
	var names []string
	for _, a := range l.authorities {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// parse reads certificates, each once.
func (t *Trust) parse(ders [][]byte) ([]*openssl.Certificate, error) {
	now := t.options.Now()
	var list []*openssl.Certificate
	for _, der := range ders {
		key := sha256.Sum256(der)
		c, ok := t.parsed.get(key, 0, now)
		if !ok {
			var err error
			if c, err = openssl.ParseCertificate(der); err != nil {
				return nil, err
			}
			t.parsed.put(key, 0, now.Add(remembered), c)
		}
		list = append(list, c)
	}
	return list, nil
}

// maxDepth bounds a chain, both ends counted. xmlsec1 takes 10.
const maxDepth = 8

// named is a certificate whose chain was verified, and its URN.
type named struct {
	certificate *openssl.Certificate
	urn         urn.URN
	until       time.Time // the first expiry in the chain
	complete    bool      // the chain goes up to a trust root that signed itself
}

// verify builds the chain of a certificate to a trust root and checks that
// nobody in it certifies names outside its own authority.
func (t *Trust) verify(a *anchors, c *openssl.Certificate, others []*openssl.Certificate) (named, error) {
	name, err := nameOf(c)
	if err != nil {
		return named{}, err
	}
	chain, err := c.Verify(openssl.VerifyOptions{
		Roots: a.roots, Intermediates: others, CRLs: a.crls, Time: t.options.Now(),
		AllowSHA1: !t.options.RefuseSHA1, MinRSABits: t.options.MinRSABits, MaxDepth: maxDepth,
	})
	if err != nil {
		return named{}, &Refusal{Text: "the certificate of " + name.String() + explain(err), Err: err}
	}
	last := chain[len(chain)-1]
	_, trusted := a.limits[last.Fingerprint]
	n := named{certificate: c, urn: name, until: c.NotAfter,
		complete: trusted && string(last.RawIssuer) == string(last.RawSubject)}
	for _, link := range chain {
		n.until = earliest(n.until, link.NotAfter)
	}
	// A chain may go on above a trust root, if that is an intermediate
	// authority. One of the roots in it has to stand for the name.
	var problem error = refuse("the certificate of %s chains to no trust root", name)
	for i, link := range chain {
		if limit, ok := a.limits[link.Fingerprint]; ok {
			if problem = within(name, chain[:i+1], limit); problem == nil {
				return n, nil
			}
		}
	}
	return named{}, problem
}

// explain says why a chain was refused, to follow whose it is.
func explain(err error) string {
	var at *openssl.VerifyError
	if !errors.As(err, &at) {
		return ": " + err.Error()
	}
	text := at.Detail
	if at.Depth > 0 {
		text = at.Error()
	}
	switch at.Reason {
	case openssl.Untrusted:
		return " chains to no trust root of this aggregate: " + text
	case openssl.WeakKey:
		return ": " + text + "; only the operator of this aggregate can allow shorter ones"
	}
	return ": " + text
}

// within checks that the name of a chain's first certificate lies within what
// its root and every authority between stand for.
func within(name urn.URN, chain []*openssl.Certificate, bounds limit) error {
	root := len(chain) - 1
	if !bounds.covers(name.Authority) {
		return refuse("the certificate of %s chains to the trust root %s, which speaks for %s", name, chain[root], bounds)
	}
	for i := root - 1; i > 0; i-- {
		above, err := nameOf(chain[i])
		if err != nil {
			if hasPublicID(chain[i]) {
				return err
			}
			continue // a plain CA between: the bounds above it hold
		}
		switch {
		case !isAuthority(above):
			return refuse("the certificate of %s was issued by %s, which is no authority", name, above)
		case !bounds.covers(above.Authority):
			return refuse("the certificate of %s chains to the authority %s, outside of %s", name, above, bounds)
		case !above.Authority.Covers(name.Authority):
			return refuse("the certificate of %s was issued by %s, an authority for other names", name, above)
		}
	}
	return nil
}
