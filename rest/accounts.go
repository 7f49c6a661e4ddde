package rest

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"croft/credentials"
	"croft/urn"
)

// Account is somebody who may use the REST faces, as configured.
type Account struct {
	Name     string   // as clients give it
	Password string   // its hash: bcrypt or argon2id; "" for none
	Token    string   // its hash, "sha256:" and hex; "" for none
	Member   urn.URN  // whom the account acts as
	Keys     []string // public SSH keys of the member, which open the nodes
}

// Errors of Accounts.
var (
	ErrMissing = errors.New("no user and password, and no token, for this service")
	ErrWrong   = errors.New("wrong user, password or token")
)

// Identity is who makes a call.
type Identity struct {
	Account string
	Member  urn.URN
	Keys    []string

	secret []byte // of the password or token that was given
	clock  func() time.Time
}

// Principal is the identity with its rights: see PrincipalOf.
func (i *Identity) Principal(site urn.Authority, lent ...urn.URN) *credentials.Principal {
	return PrincipalOf(site, i.Member, i.clock, lent...)
}

// Authority is the sub-authority of a site that the slices of the identity's
// member are in, for a face: "example.org:im:u-alice".
func (i *Identity) Authority(site urn.Authority, face string) urn.Authority {
	return authority(site, face, i.Member)
}

// Owner names the identity's member, as a part of authorities and file names.
func (i *Identity) Owner(site urn.Authority) string { return ownerOf(site, i.Member) }

func authority(site urn.Authority, face string, member urn.URN) urn.Authority {
	return urn.Authority(fmt.Sprintf("%s:%s:%s", site, face, ownerOf(site, member)))
}

func ownerOf(site urn.Authority, member urn.URN) string {
	name := strings.ToLower(member.Name)
	if member.Authority.Equal(site) && ownerName.MatchString(name) {
		return "u-" + name
	}
	sum := sha256.Sum256([]byte(member.Canonical().String()))
	return "f-" + hex.EncodeToString(sum[:10])
}

var ownerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,40}$`)

// Derive makes a key of the secret that the caller gave: always the same one
// for a purpose while the password or token stays the same, and nobody else
// can make it. Nothing of it is kept.
func (i *Identity) Derive(purpose string, length int) ([]byte, error) {
	return hkdf.Key(sha256.New, i.secret, nil, "croft rest "+purpose, length)
}

// Accounts knows who may call.
type Accounts struct {
	clock  func() time.Time
	byName map[string]*account
	tokens map[string]*account // by hash
	unused *hash               // what passwords of unknown users are compared with

	throttle *throttle
	hashing  chan struct{} // slots for hashes being computed

	mu     sync.Mutex
	key    [32]byte // of the digests below; drawn at every start
	lately map[[32]byte]proven
	// friends are the pairs of address and account that were right once: that
	// others guess at an account does not lock them out.
	friends map[[2]string]bool
}

type account struct {
	Account
	hash *hash
}

// proven is a secret that was right lately.
type proven struct {
	account *account
	until   time.Time
	secret  []byte
}

const (
	provenFor   = 5 * time.Minute
	maxProven   = 10000
	hashesOnce  = 2
	maxSecret   = 1024
	stretchSalt = "croft rest secret"
)

var accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// NewAccounts reads accounts. Errors name the account.
func NewAccounts(list []Account, clock func() time.Time) (*Accounts, error) {
	a := &Accounts{
		clock: clock, byName: map[string]*account{}, tokens: map[string]*account{},
		throttle: newThrottle(clock), hashing: make(chan struct{}, hashesOnce), lately: map[[32]byte]proven{},
		friends: map[[2]string]bool{},
	}
	if _, err := rand.Read(a.key[:]); err != nil {
		return nil, fmt.Errorf("drawing a key: %w", err)
	}
	var problems []error
	for i, c := range list {
		if err := a.add(c); err != nil {
			problems = append(problems, fmt.Errorf("account %d, %q: %w", i+1, c.Name, err))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	unused, err := HashPassword("nobody's password", rand.Reader)
	if err != nil {
		return nil, err
	}
	a.unused, err = parseHash(unused)
	return a, err
}

func (a *Accounts) add(c Account) error {
	own := &account{Account: c}
	switch {
	case !accountName.MatchString(c.Name):
		return errors.New("names are of letters, digits and ._@-")
	case a.byName[c.Name] != nil:
		return errors.New("there is another one of this name")
	case c.Member.Type.Canonical() != urn.User:
		return fmt.Errorf("member %q is not the URN of a user", c.Member)
	case c.Password == "" && c.Token == "":
		return errors.New("neither a password nor a token")
	}
	if c.Password != "" {
		var err error
		if own.hash, err = parseHash(c.Password); err != nil {
			return fmt.Errorf("password: %w", err)
		}
	}
	if c.Token != "" {
		sum, err := hex.DecodeString(strings.TrimPrefix(c.Token, tokenScheme))
		if err != nil || len(sum) != sha256.Size || !strings.HasPrefix(c.Token, tokenScheme) {
			return errors.New("token: not the hash of one (croft account token makes one)")
		}
		a.tokens[strings.ToLower(c.Token)] = own
	}
	a.byName[c.Name] = own
	return nil
}

// Password finds who gives a user name and password, or a token as the
// password. source is the address that the call comes from. Wrong ones are
// ErrWrong, and too many of them a *Throttled.
func (a *Accounts) Password(ctx context.Context, source, user, password string) (*Identity, error) {
	digest := a.digest(user, password)
	if p, ok := a.known(digest); ok {
		return a.identity(ctx, p), nil
	}
	if err := a.may(source, user); err != nil {
		return nil, err
	}
	if len(user) > maxSecret || len(password) > maxSecret {
		return nil, ErrWrong
	}
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	own, compare := a.byName[user], a.unused
	if own != nil && own.hash != nil {
		compare = own.hash
	}
	right := compare.is(password) && own != nil && own.hash != nil
	if !right && own != nil && own.Token != "" && strings.EqualFold(hashToken(password), own.Token) {
		right = true
	}
	if !right {
		a.throttle.wrong("source " + source)
		a.throttle.wrong("account " + user)
		return nil, ErrWrong
	}
	a.mu.Lock()
	if len(a.friends) >= maxProven {
		clear(a.friends)
	}
	a.friends[[2]string{source, user}] = true
	a.mu.Unlock()
	return a.identity(ctx, a.remember(digest, own, password)), nil
}

// Token finds who gives a token.
func (a *Accounts) Token(ctx context.Context, source, token string) (*Identity, error) {
	if wait := a.throttle.wait("source "+source, sourceAttempts); wait > 0 {
		return nil, &Throttled{After: wait}
	}
	own := a.tokens[hashToken(token)]
	if own == nil || len(token) > maxSecret {
		a.throttle.wrong("source " + source)
		return nil, ErrWrong
	}
	digest := a.digest("", token)
	if p, ok := a.known(digest); ok {
		return a.identity(ctx, p), nil
	}
	return a.identity(ctx, a.remember(digest, own, token)), nil
}

// FromHeader finds who makes a request by its Authorization header, in the
// forms Basic and Bearer.
func (a *Accounts) FromHeader(r *http.Request) (*Identity, error) {
	if user, password, ok := r.BasicAuth(); ok {
		return a.Password(r.Context(), Source(r), user, password)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(token) != "" {
		return a.Token(r.Context(), Source(r), strings.TrimSpace(token))
	}
	return nil, ErrMissing
}

// may refuses a login where there were too many wrong ones.
func (a *Accounts) may(source, user string) error {
	wait := a.throttle.wait("source "+source, sourceAttempts)
	a.mu.Lock()
	friend := a.friends[[2]string{source, user}]
	a.mu.Unlock()
	if !friend {
		wait = max(wait, a.throttle.wait("account "+user, accountAttempts))
	}
	if wait > 0 {
		return &Throttled{After: wait}
	}
	return nil
}

func (a *Accounts) digest(user, secret string) [32]byte {
	m := hmac.New(sha256.New, a.key[:])
	fmt.Fprintf(m, "%d:%s%s", len(user), user, secret)
	return [32]byte(m.Sum(nil))
}

func (a *Accounts) known(digest [32]byte) (proven, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.lately[digest]
	return p, ok && a.clock().Before(p.until)
}

// remember notes a secret that was right, by a digest that only this process
// can make, so that polling clients do not cost a hash each time.
func (a *Accounts) remember(digest [32]byte, own *account, secret string) proven {
	p := proven{account: own, until: a.clock().Add(provenFor), secret: stretch(own.Member, secret)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lately) >= maxProven {
		clear(a.lately)
	}
	a.lately[digest] = p
	return p
}

func (a *Accounts) identity(ctx context.Context, p proven) *Identity {
	note(ctx, p.account.Name)
	return &Identity{Account: p.account.Name, Member: p.account.Member, Keys: p.account.Keys, secret: p.secret, clock: a.clock}
}
