package am

import (
	"context"
	"log/slog"
	"strings"

	"croft/am/wire"
	"croft/urn"
)

// audit writes the one line that every call leaves: who called, for whom, what,
// on which slice, and what came of it. No credential is in it, only which one
// it was, and no more of what callers sent than errorLogged.
func (a *API) audit(ctx context.Context, in *incoming, v version, method string, c *wire.Call, err error) {
	in.audited = true
	code := wire.CodeOf(err)
	attrs := a.auditBegin(in, v, method, code.String())
	if p := c.Principal; p != nil {
		if !p.User.IsZero() {
			attrs = append(attrs, slog.String("user", p.User.String()))
		}
		for _, used := range p.Used() {
			attrs = append(attrs, slog.String("credential", used.String()))
		}
		if p.SpeaksBy != nil {
			attrs = append(attrs, slog.String("speaks_by", p.SpeaksBy.String()))
		}
	}
	slice, others := split(c.Targets)
	if !slice.IsZero() {
		attrs = append(attrs, slog.String("slice", slice.String()))
	}
	if others != "" {
		attrs = append(attrs, slog.String("slivers", others))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", shorten(err.Error())))
	}
	level := slog.LevelInfo
	if code == wire.ServerError {
		level = slog.LevelError
	}
	a.Log.LogAttrs(ctx, level, "call", attrs...)
}

// auditUnread writes the line of a request that was answered before it came to
// a call: with a Fault or an HTTP status.
func (a *API) auditUnread(ctx context.Context, in *incoming, v version, httpMethod string) {
	attrs := a.auditBegin(in, v, in.method, "FAULT")
	if httpMethod != "POST" {
		attrs = append(attrs, slog.String("http_method", shorten(httpMethod)))
	}
	a.Log.LogAttrs(ctx, slog.LevelInfo, "call", attrs...)
}

func (a *API) auditBegin(in *incoming, v version, method, code string) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("api", v.key), slog.String("method", method), slog.String("code", code),
		slog.Duration("took", a.Clock().Sub(in.began)), slog.String("from", in.from),
	}
	if in.caller != nil {
		attrs = append(attrs, slog.String("caller", in.caller.URN.String()))
	}
	return attrs
}

// errorLogged is how many bytes of an error are logged: some quote the document
// that they are about.
const errorLogged = 400

func shorten(text string) string {
	if len(text) <= errorLogged {
		return text
	}
	return strings.ToValidUTF8(text[:errorLogged], "") + "…"
}

// urnsLogged bounds how many URNs of a call are logged.
const urnsLogged = 4

// split tells the slice that a call is about from what else it names.
func split(targets []urn.URN) (slice urn.URN, others string) {
	var rest []string
	for _, u := range targets {
		switch {
		case slice.IsZero() && u.Type.Canonical() == urn.Slice:
			slice = u
		case len(rest) == urnsLogged:
			return slice, strings.Join(rest, " ") + " and more"
		default:
			rest = append(rest, u.String())
		}
	}
	return slice, strings.Join(rest, " ")
}
