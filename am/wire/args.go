package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"croft/credentials"
	"croft/request"
	"croft/urn"
)

// ArgError says which argument of a call is wrong, and how.
type ArgError struct {
	Where string // "urns[1]", "options.geni_end_time"
	What  string
}

func (e *ArgError) Error() string { return e.Where + ": " + e.What }

func wrong(where, format string, args ...any) error {
	return &ArgError{Where: where, What: fmt.Sprintf(format, args...)}
}

// Brief returns a word as it is, and the beginning of what is too long for one.
// What a caller sent may be anything, also a credential or a key in the wrong
// place, and gets into replies and logs.
func Brief(s string) string {
	const longest, shown = 64, 24
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:shown], "") + "…"
}

func quote(s string) string { return strconv.Quote(Brief(s)) }

// Args are the arguments of one call. Their names are in the order of the
// call's signature.
type Args struct {
	names  []string
	values []any
}

// NewArgs matches the values of a call with the names of its arguments. A
// missing last argument is an empty options struct, for clients that leave it
// out.
func NewArgs(values []any, names ...string) (*Args, error) {
	if len(values) == len(names)-1 && len(names) > 0 && names[len(names)-1] == "options" {
		values = append(values[:len(values):len(values)], map[string]any{})
	}
	if len(values) != len(names) {
		return nil, wrong("arguments", "want %d (%s), got %d", len(names), strings.Join(names, ", "), len(values))
	}
	return &Args{names: names, values: values}, nil
}

// OptionsOnly checks the arguments of GetVersion: options, which alone there
// may be left out.
func OptionsOnly(values []any) error {
	if len(values) > 1 {
		return wrong("arguments", "want none, or options, got %d", len(values))
	}
	return nil
}

func (a *Args) get(name string) any {
	for i, n := range a.names {
		if n == name {
			return a.values[i]
		}
	}
	panic("wire: no argument " + name) // a mistake of the codec's, not of the caller's
}

// String returns a string argument.
func (a *Args) String(name string) (string, error) { return asString(a.get(name), name) }

// URN returns a URN argument.
func (a *Args) URN(name string) (urn.URN, error) { return asURN(a.get(name), name) }

// Time returns a date argument.
func (a *Args) Time(name string) (time.Time, error) { return asTime(a.get(name), name) }

// maxURNs bounds how many slivers one call may name.
const maxURNs = 10_000

// URNs returns an argument that is a list of URNs.
func (a *Args) URNs(name string) ([]urn.URN, error) {
	list, err := asList(a.get(name), name)
	if err != nil {
		return nil, err
	}
	if len(list) > maxURNs {
		return nil, wrong(name, "%d URNs: at most %d", len(list), maxURNs)
	}
	urns := make([]urn.URN, len(list))
	for i, v := range list {
		if urns[i], err = asURN(v, fmt.Sprintf("%s[%d]", name, i)); err != nil {
			return nil, err
		}
	}
	return urns, nil
}

// Users returns an argument that is a list of users.
func (a *Args) Users(name string) ([]request.User, error) { return asUsers(a.get(name), name) }

// maxCredentials bounds how many credentials one call may carry.
const maxCredentials = 100

// Credentials returns the credentials argument of version 3: a list of structs
// {geni_type, geni_version, geni_value}. Plain strings, as version 2 sends
// them, are SFA credentials.
func (a *Args) Credentials(name string) ([]credentials.Credential, error) {
	list, err := asList(a.get(name), name)
	if err != nil {
		return nil, err
	}
	if len(list) > maxCredentials {
		return nil, wrong(name, "%d credentials: at most %d", len(list), maxCredentials)
	}
	out := make([]credentials.Credential, len(list))
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", name, i)
		if text, ok := v.(string); ok {
			out[i] = credentials.Credential{Type: "geni_sfa", Value: text}
			continue
		}
		s, ok := v.(map[string]any)
		if !ok {
			return nil, wrong(at, "want a struct {geni_type, geni_version, geni_value}, got %s", kind(v))
		}
		if out[i].Type, err = asString(s["geni_type"], at+".geni_type"); err != nil {
			return nil, err
		}
		if out[i].Value, err = asString(s["geni_value"], at+".geni_value"); err != nil {
			return nil, err
		}
		switch version := s["geni_version"].(type) {
		case string:
			out[i].Version = version
		case int:
			out[i].Version = fmt.Sprint(version) // some clients send a number
		case nil:
		default:
			return nil, wrong(at+".geni_version", "want a string, got %s", kind(version))
		}
	}
	return out, nil
}

// Options returns the options argument. Nothing (an extension of XML-RPC) is
// no options.
func (a *Args) Options() (Options, error) {
	switch v := a.get("options").(type) {
	case nil:
		return Options{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, wrong("options", "want a struct, got %s", kind(v))
	}
}

// Options are the options of a call. Unknown ones are ignored (AM API v3,
// "options").
type Options map[string]any

// Bool returns an option that is false when missing. Numbers and words are
// taken, as some clients send them.
func (o Options) Bool(name string) (bool, error) {
	switch v := o[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case int:
		return v != 0, nil
	case string:
		if b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(v))); err == nil {
			return b, nil
		}
	}
	return false, wrong("options."+name, "want a boolean, got %s", kind(o[name]))
}

// NoReservation refuses what asks for slivers that begin later.
func (o Options) NoReservation() error {
	const name = "geni_start_time"
	if o[name] == nil || o[name] == "" {
		return nil
	}
	return wrong("options."+name, "advance reservations are not possible here yet: slivers begin at once. Leave the option out")
}

// Time returns an option that is a date, or the zero time when missing.
func (o Options) Time(name string) (time.Time, error) {
	if o[name] == nil {
		return time.Time{}, nil
	}
	return asTime(o[name], "options."+name)
}

// URN returns an option that is a URN, or the zero URN when missing.
func (o Options) URN(name string) (urn.URN, error) {
	if o[name] == nil || o[name] == "" {
		return urn.URN{}, nil
	}
	return asURN(o[name], "options."+name)
}

// Struct returns an option that is a struct, or nil when missing.
func (o Options) Struct(name string) (map[string]any, error) {
	switch v := o[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return nil, wrong("options."+name, "want a struct, got %s", kind(v))
	}
}

// RSpecVersion names a document format.
type RSpecVersion struct{ Type, Version string }

// RSpecVersion returns the required option geni_rspec_version.
func (o Options) RSpecVersion() (RSpecVersion, error) {
	const name = "geni_rspec_version"
	s, err := o.Struct(name)
	if err != nil {
		return RSpecVersion{}, err
	}
	if s == nil {
		return RSpecVersion{}, wrong("options."+name, "missing: want a struct {type, version} that GetVersion lists")
	}
	return asRSpecVersion(s, "options."+name)
}

func asRSpecVersion(s map[string]any, where string) (v RSpecVersion, err error) {
	if v.Type, err = asString(s["type"], where+".type"); err != nil {
		return v, err
	}
	if n, ok := s["version"].(int); ok { // some clients send a number
		v.Version = fmt.Sprint(n)
	} else if v.Version, err = asString(s["version"], where+".version"); err != nil {
		return v, err
	}
	v.Type, v.Version = Brief(v.Type), Brief(v.Version)
	return v, nil
}

// Users returns the option geni_users: a list of structs {urn, keys}.
func (o Options) Users() ([]request.User, error) {
	const name = "geni_users"
	if o[name] == nil {
		return nil, nil
	}
	return asUsers(o[name], "options."+name)
}

func asUsers(v any, where string) ([]request.User, error) {
	list, err := asList(v, where)
	if err != nil {
		return nil, err
	}
	users := make([]request.User, len(list))
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", where, i)
		s, ok := v.(map[string]any)
		if !ok {
			return nil, wrong(at, "want a struct {urn, keys}, got %s", kind(v))
		}
		if users[i].URN, err = asURN(s["urn"], at+".urn"); err != nil {
			return nil, err
		}
		if users[i].Keys, err = asKeys(s["keys"], at+".keys"); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// asKeys reads SSH keys: a list of them, or one string with a key in each line,
// as an authorized_keys file has them. ProtoGENI's clients send structs
// {type, key}.
func asKeys(v any, where string) (keys []string, err error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				keys = append(keys, line)
			}
		}
		return keys, nil
	}
	list, err := asList(v, where)
	if err != nil {
		return nil, err
	}
	for i, k := range list {
		at := fmt.Sprintf("%s[%d]", where, i)
		if s, ok := k.(map[string]any); ok {
			k, at = s["key"], at+".key"
		}
		key, err := asString(k, at)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func asString(v any, where string) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", wrong(where, "want a string, got %s", kind(v))
}

func asList(v any, where string) ([]any, error) {
	if l, ok := v.([]any); ok {
		return l, nil
	}
	return nil, wrong(where, "want an array, got %s", kind(v))
}

// longestQuoted is the longest wrong URN that is shown whole.
const longestQuoted = 128

func asURN(v any, where string) (urn.URN, error) {
	s, err := asString(v, where)
	if err != nil {
		return urn.URN{}, err
	}
	u, err := urn.Parse(s)
	if err != nil {
		if len(s) > longestQuoted {
			return u, wrong(where, "%s is no URN: want one such as urn:publicid:IDN+example.org+slice+exp1", quote(s))
		}
		return u, wrong(where, "%v", err)
	}
	return u, nil
}

// asTime reads RFC 3339 in all the forms that clients send: without a zone it
// is UTC, and a blank may stand for the T.
func asTime(v any, where string) (time.Time, error) {
	if t, ok := v.(time.Time); ok { // dateTime.iso8601, which the API does not use
		return t, nil
	}
	s, err := asString(v, where)
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, wrong(where, "%s is no date: want RFC 3339, such as 2030-01-31T12:00:00Z", quote(s))
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case int, int64:
		return "an int"
	case bool:
		return "a boolean"
	case float64:
		return "a double"
	case []byte:
		return "base64"
	case time.Time:
		return "a dateTime.iso8601"
	case []any:
		return "an array"
	case map[string]any:
		return "a struct"
	}
	return fmt.Sprintf("%T", v)
}

// Time writes a date as replies carry it: RFC 3339, UTC, no fractions.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }
