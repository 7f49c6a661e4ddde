package rest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxReason bounds the reason phrase of a status line.
const maxReason = 400

// AnswerReason answers with a reason phrase of one's own, for clients that
// show it to their users and nothing else. The connection is closed after it;
// where that cannot be done, the answer has the usual reason phrase.
func AnswerReason(w http.ResponseWriter, status int, reason, mediaType string, body []byte) {
	header := w.Header().Clone()
	header.Set("Content-Type", mediaType)
	conn, out, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	defer conn.Close()
	if call, ok := w.(*recorder); ok {
		call.status, call.begun = status, true
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	header.Set("Connection", "close")
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(out, "HTTP/1.1 %d %s\r\n", status, reasonPhrase(status, reason))
	if header.Write(out) == nil {
		fmt.Fprint(out, "\r\n")
		_, _ = out.Write(body)
		_ = out.Flush()
	}
}

// reasonPhrase is a text on one line of ASCII (RFC 9112, section 4).
func reasonPhrase(status int, text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r > '~':
			return -1
		}
		return r
	}, text)
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	if text = strings.TrimSpace(text); text == "" {
		return http.StatusText(status)
	}
	return text
}
