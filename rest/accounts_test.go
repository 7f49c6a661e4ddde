package rest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/credentials"
	"croft/rest"
	"croft/urn"
)

var (
	alice = urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	bob   = urn.MustParse("urn:publicid:IDN+example.org+user+bob")
)

func accounts(t *testing.T) (a *rest.Accounts, c *surroundings.Clock, token string) {
	t.Helper()
	c = surroundings.StandingClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	argon, err := rest.HashPassword("alice's password", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	blow, err := bcrypt.GenerateFromPassword([]byte("bob's password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	token, hash, err := rest.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, err = rest.NewAccounts([]rest.Account{
		{Name: "alice", Password: argon, Member: alice},
		{Name: "bob", Password: string(blow), Token: hash, Member: bob},
	}, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return a, c, token
}

func TestAccounts(t *testing.T) {
	a, _, token := accounts(t)
	for _, test := range []struct {
		name, user, password, token string
		member                      urn.URN // zero: it is wrong
	}{
		{name: "argon2id", user: "alice", password: "alice's password", member: alice},
		{name: "bcrypt", user: "bob", password: "bob's password", member: bob},
		{name: "token", token: token, member: bob},
		{name: "token as a password", user: "bob", password: token, member: bob},
		{name: "other's password", user: "alice", password: "bob's password"},
		{name: "other's token", user: "alice", password: token},
		{name: "unknown user", user: "carol", password: "alice's password"},
		{name: "no password", user: "alice"},
		{name: "the password for nobody", user: "carol", password: "nobody's password"},
		{name: "no such token", token: "croft-x"},
		{name: "long", user: "bob", password: strings.Repeat("x", 5000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // the second time it is remembered
				var id *rest.Identity
				var err error
				if test.token != "" {
					id, err = a.Token(context.Background(), "192.0.2.1", test.token)
				} else {
					id, err = a.Password(context.Background(), "192.0.2.1", test.user, test.password)
				}
				if test.member.IsZero() {
					if !errors.Is(err, rest.ErrWrong) {
						t.Errorf("%v, want ErrWrong", err)
					}
				} else if err != nil || !id.Member.Equal(test.member) {
					t.Errorf("%v, %v", id, err)
				}
			}
		})
	}
}

const accountGuesses = 12

// Who guesses is held up: from one address, and at one account from many.
// Whom the account belongs to is not locked out where it has logged in before.
func TestThrottle(t *testing.T) {
	a, c, _ := accounts(t)
	ctx := context.Background()
	var slow *rest.Throttled
	if _, err := a.Password(ctx, "192.0.2.9", "alice", "alice's password"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; n < 100; n++ {
		if _, err := a.Password(ctx, "192.0.2."+string(rune('1'+n%5)), "alice", "guess"); errors.As(err, &slow) {
			break
		}
	}
	if n < 5 || n > 20 {
		t.Errorf("%d guesses at one account went through", n)
	}
	c.Advance(6 * time.Minute) // what was right lately is forgotten
	for range accountGuesses {
		_, _ = a.Password(ctx, "198.51.100.1", "alice", "guess")
	}
	if _, err := a.Password(ctx, "192.0.2.3", "alice", "alice's password"); !errors.As(err, &slow) || slow.After <= 0 {
		t.Errorf("the right password after too many wrong ones: %v", err)
	}
	if _, err := a.Password(ctx, "192.0.2.9", "alice", "alice's password"); err != nil {
		t.Errorf("from where it was right before: %v", err)
	}
	for range 30 {
		_, _ = a.Token(ctx, "203.0.113.1", "guess")
	}
	if _, err := a.Token(ctx, "203.0.113.1", "guess"); !errors.As(err, &slow) {
		t.Errorf("tokens are guessed without end: %v", err)
	}
	c.Advance(time.Hour)
	if _, err := a.Password(ctx, "192.0.2.3", "alice", "alice's password"); err != nil {
		t.Errorf("after an hour: %v", err)
	}
}

func TestNewAccountsRefuses(t *testing.T) {
	hash, err := rest.HashPassword("some password", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]rest.Account{
		"plain password":     {{Name: "a", Password: "some password", Member: alice}},
		"plain token":        {{Name: "a", Token: "croft-token", Member: alice}},
		"no secret":          {{Name: "a", Member: alice}},
		"no member":          {{Name: "a", Password: hash}},
		"a slice for member": {{Name: "a", Password: hash, Member: urn.MustParse("urn:publicid:IDN+example.org+slice+s")}},
		"twice":              {{Name: "a", Password: hash, Member: alice}, {Name: "a", Password: hash, Member: bob}},
		"name with spaces":   {{Name: "a b", Password: hash, Member: alice}},
		"costly argon2id":    {{Name: "a", Password: strings.Replace(hash, "m=19456", "m=99999999", 1), Member: alice}},
		"costly bcrypt":      {{Name: "a", Password: "$2a$20$" + strings.Repeat("a", 53), Member: alice}},
	} {
		if _, err := rest.NewAccounts(list, time.Now); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), "some password") {
			t.Errorf("%s: the error repeats a secret: %v", name, err)
		}
	}
}

// What an identity may: everything on slices of its own authority, nothing
// elsewhere.
func TestPrincipal(t *testing.T) {
	a, _, _ := accounts(t)
	id, err := a.Password(context.Background(), "", "alice", "alice's password")
	if err != nil {
		t.Fatal(err)
	}
	own := id.Authority("example.org", "im")
	lent := urn.MustParse("urn:publicid:IDN+example.org+slice+lent")
	if own != "example.org:im:u-alice" {
		t.Errorf("authority %s", own)
	}
	p := id.Principal("example.org", lent, urn.MustParse("urn:publicid:IDN+example.org:im:u-alice+slice+x"))
	for _, test := range []struct {
		slice string
		may   bool
	}{
		{"urn:publicid:IDN+example.org:im:u-alice+slice+x", true},
		{"urn:publicid:IDN+example.org:im:u-bob+slice+x", false},
		{"urn:publicid:IDN+example.org:im+slice+x", false},
		{"urn:publicid:IDN+example.org+slice+x", false},
		{"urn:publicid:IDN+example.org:zoe:u-alice+slice+x", true},
		{"urn:publicid:IDN+example.org:camp:u-alice+slice+x", true},
		{"urn:publicid:IDN+example.org:zoe:u-bob+slice+x", false},
		{"urn:publicid:IDN+example.org:other:u-alice+slice+x", false},
	} {
		for _, call := range credentials.Calls() {
			if call == credentials.ListResources {
				continue
			}
			if _, err := p.May(call, urn.MustParse(test.slice)); (err == nil) != test.may {
				t.Errorf("%s on %s: %v", call, test.slice, err)
			}
		}
	}
	other, err := a.Password(context.Background(), "", "bob", "bob's password")
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := id.Derive("x", 32)
	two, err2 := id.Derive("y", 32)
	same, err3 := id.Derive("x", 32)
	theirs, err4 := other.Derive("x", 32)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, same) || bytes.Equal(one, two) || bytes.Equal(one, theirs) {
		t.Error("derived keys are not one for each purpose and secret")
	}
}

func TestFromHeader(t *testing.T) {
	a, _, token := accounts(t)
	for name, test := range map[string]struct {
		set    func(*http.Request)
		member urn.URN
		err    error
	}{
		"basic":   {func(r *http.Request) { r.SetBasicAuth("alice", "alice's password") }, alice, nil},
		"bearer":  {func(r *http.Request) { r.Header.Set("Authorization", "bearer "+token) }, bob, nil},
		"nothing": {func(*http.Request) {}, urn.URN{}, rest.ErrMissing},
		"other":   {func(r *http.Request) { r.Header.Set("Authorization", "Digest x") }, urn.URN{}, rest.ErrMissing},
		"wrong":   {func(r *http.Request) { r.SetBasicAuth("alice", "x") }, urn.URN{}, rest.ErrWrong},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		test.set(r)
		id, err := a.FromHeader(r)
		if !errors.Is(err, test.err) || err == nil && !id.Member.Equal(test.member) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}
