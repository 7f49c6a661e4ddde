package resttest

import (
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"croft/rest"
	"croft/urn"
)

// Password is the one of a member of Accounts.
func Password(name string) string { return name + "'s password" }

// Accounts makes accounts of members of example.org, whose passwords are proven
// quicker than those of real ones.
func Accounts(t testing.TB, clock func() time.Time, names ...string) *rest.Accounts {
	t.Helper()
	var list []rest.Account
	for _, name := range names {
		hash, err := bcrypt.GenerateFromPassword([]byte(Password(name)), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rest.Account{Name: name, Password: string(hash), Member: urn.MustParse("urn:publicid:IDN+example.org+user+" + name)})
	}
	accounts, err := rest.NewAccounts(list, clock)
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

// Records opens records in a folder.
func Records(t testing.TB, dir string) *rest.Records {
	t.Helper()
	r, err := rest.OpenRecords(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
