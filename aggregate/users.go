package aggregate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"croft/request"
	"croft/urn"
)

// Bounds on what one call may set.
const (
	maxUsers = 100
	maxKeys  = 100 // of one user
)

// cleanUsers checks the users of a call and writes their keys anew: type and
// base64 only, so that no option or comment of an experimenter's gets into an
// account.
func cleanUsers(users []request.User) ([]request.User, error) {
	if len(users) > maxUsers {
		return nil, refuse(BadArgs, "geni_users: %d users: at most %d", len(users), maxUsers)
	}
	var out []request.User
	for i, u := range users {
		if u.URN.IsZero() {
			return nil, refuse(BadArgs, "geni_users[%d]: no urn", i)
		}
		if len(u.Keys) > maxKeys {
			return nil, refuse(BadArgs, "geni_users[%d]: %d keys: at most %d", i, len(u.Keys), maxKeys)
		}
		clean := request.User{URN: u.URN}
		for j, text := range u.Keys {
			key, err := cleanKey(text)
			if err != nil {
				e := refuse(BadArgs, "geni_users[%d].keys[%d]: %w", i, j, err)
				e.Item = u.URN.String()
				e.Hint = "want the one line of an OpenSSH public key file, such as id_ed25519.pub"
				return nil, e
			}
			if !slices.Contains(clean.Keys, key) {
				clean.Keys = append(clean.Keys, key)
			}
		}
		if k := slices.IndexFunc(out, func(v request.User) bool { return v.URN.Equal(u.URN) }); k >= 0 {
			out[k].Keys = append(out[k].Keys, clean.Keys...)
			continue
		}
		out = append(out, clean)
	}
	return out, nil
}

func cleanKey(text string) (string, error) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("more than one line")
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return "", fmt.Errorf("not a public key: %w", err)
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return "", fmt.Errorf("a certificate (%s): want a plain key", key.Type())
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// wantedUsers checks the users that a node of a request asks for. One who is no
// member of any federation is a user of the slice's.
func wantedUsers(slice urn.URN, n *request.Node) ([]request.User, error) {
	var out []request.User
	for _, u := range n.Users {
		if u.URN.IsZero() {
			name := accountName(u.Login)
			u.URN = urn.URN{Authority: slice.Authority + urn.Authority(":"+label(slice.Name)), Type: urn.User, Name: name}
		}
		clean, err := cleanUsers([]request.User{u})
		if err != nil {
			e := refuse(BadArgs, "%s: user %s: %w", n.Place, u.Login, err)
			e.Item = string(n.ID)
			return nil, e
		}
		clean[0].Login = u.Login
		out = append(out, clean...)
	}
	if len(out) > maxUsers {
		return nil, refuse(BadArgs, "%s: %d users: at most %d", n.Place, len(out), maxUsers)
	}
	return out, nil
}

// addUsers adds the users that a document asks for to those of a call. The keys
// of these open also the accounts that the document gives no key for.
func addUsers(users, wanted []request.User) []request.User {
	out := slices.Clone(users)
	for _, w := range wanted {
		if len(w.Keys) == 0 {
			for _, u := range users {
				w.Keys = append(slices.Clip(w.Keys), u.Keys...)
			}
		}
		k := slices.IndexFunc(out, func(u request.User) bool { return u.URN.Equal(w.URN) })
		if k < 0 {
			out = append(out, w)
			continue
		}
		keys := slices.Clone(out[k].Keys)
		for _, key := range w.Keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		out[k].Keys = keys
		if w.Login != "" {
			out[k].Login = w.Login
		}
	}
	return out
}

// assignLogins gives every user an account name of a node: the user's own name
// (or the one wished for) where it can be, else with a number. Users that the node has already keep
// theirs. Taken are the accounts of the node's image.
func assignLogins(users, already []request.User, taken []string) []request.User {
	used := map[string]bool{}
	for _, name := range taken {
		used[name] = true
	}
	for _, u := range already {
		used[u.Login] = true
	}
	out := slices.Clone(users)
	for i := range out {
		if k := slices.IndexFunc(already, func(v request.User) bool { return v.URN.Equal(out[i].URN) }); k >= 0 {
			out[i].Login = already[k].Login
			continue
		}
		base := accountName(out[i].URN.Name)
		if out[i].Login != "" {
			base = accountName(out[i].Login)
		}
		name := base
		for n := 2; used[name]; n++ {
			name = base + strconv.Itoa(n)
		}
		used[name] = true
		out[i].Login = name
	}
	return out
}

// accountName makes a Linux account name of a user's: lower case, a letter
// first, as useradd of Debian takes it.
func accountName(user string) string {
	const most = 28 // leaves room for a number in the 32 that Linux allows
	var b strings.Builder
	for _, r := range strings.ToLower(user) {
		letter := r >= 'a' && r <= 'z'
		if letter || b.Len() > 0 && (r >= '0' && r <= '9' || r == '_' || r == '-') {
			b.WriteRune(r)
		}
		if b.Len() == most {
			break
		}
	}
	if b.Len() == 0 {
		return "user"
	}
	return b.String()
}
