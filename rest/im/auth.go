package im

import (
	"encoding/json"
	"net/http"
	"strings"

	"croft/rest"
)

// serviceType is the type of the line of an authorization header that is for
// this service. The others have the passwords of clouds: they are passed over
// and never kept.
const serviceType = "InfrastructureManager"

// identify finds who makes a request: by Basic, Bearer, or what clients of the
// Infrastructure Manager send, lines of "key = value;" with \n between them,
// or the same as a JSON list.
func (f *Face) identify(r *http.Request) (*rest.Identity, error) {
	header := strings.TrimSpace(r.Header.Get("Authorization"))
	if scheme, _, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Basic") || strings.EqualFold(scheme, "Bearer") {
		return f.Accounts.FromHeader(r)
	}
	user, password, token := serviceLine(header)
	switch {
	case token != "":
		return f.Accounts.Token(r.Context(), rest.Source(r), token)
	case user != "":
		return f.Accounts.Password(r.Context(), rest.Source(r), user, password)
	}
	return nil, rest.ErrMissing
}

// serviceLine returns what a header says for this service.
func serviceLine(header string) (user, password, token string) {
	if strings.HasPrefix(header, "[") {
		var list []map[string]json.RawMessage
		if json.Unmarshal([]byte(header), &list) != nil {
			return "", "", ""
		}
		text := func(m map[string]json.RawMessage, key string) string {
			var s string
			_ = json.Unmarshal(m[key], &s)
			return s
		}
		for _, m := range list {
			if text(m, "type") == serviceType {
				return text(m, "username"), text(m, "password"), text(m, "token")
			}
		}
		return "", "", ""
	}
	for _, line := range headerLines(header) {
		values := map[string]string{}
		for _, token := range splitUnquoted(line, ';') {
			key, value, ok := strings.Cut(token, "=")
			if ok {
				values[strings.TrimSpace(key)] = unquote(strings.TrimSpace(value))
			}
		}
		if values["type"] == serviceType {
			return values["username"], values["password"], values["token"]
		}
	}
	return "", "", ""
}

// headerLines splits a header at the two characters \n. Three, \\n, are a line
// break within a value.
func headerLines(header string) []string {
	var lines []string
	var line strings.Builder
	for i := 0; i < len(header); i++ {
		switch {
		case strings.HasPrefix(header[i:], `\\n`):
			line.WriteByte('\n')
			i += 2
		case strings.HasPrefix(header[i:], `\n`):
			lines = append(lines, line.String())
			line.Reset()
			i++
		default:
			line.WriteByte(header[i])
		}
	}
	return append(lines, line.String())
}

// splitUnquoted splits a line at a separator that is not within quotation
// marks. Only what a value begins with is one.
func splitUnquoted(line string, separator byte) []string {
	var list []string
	var quote, before byte // before is what stands before, but for spaces
	from := 0
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '\'' || c == '"') && before == '=':
			quote = c
		case c == separator:
			list = append(list, line[from:i])
			from = i + 1
		}
		if line[i] != ' ' {
			before = line[i]
		}
	}
	return append(list, line[from:])
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
