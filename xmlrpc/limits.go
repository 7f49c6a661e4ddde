package xmlrpc

import "fmt"

// Limits bound what is read. A zero field is the default.
type Limits struct {
	Bytes  int64 // size of a document, after decompression; 16 MiB
	Depth  int   // values within values; 64
	Values int   // values in all; 250,000
	String int64 // bytes of one string or base64 text; as many as Bytes
}

func (l Limits) orDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 16 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	if l.Values <= 0 {
		l.Values = 250_000
	}
	if l.String <= 0 {
		l.String = l.Bytes
	}
	return l
}

// LimitError says which limit a document exceeds.
type LimitError struct {
	What  string // such as "bytes in the document"
	Limit int64
	Place string // such as "param 3, member geni_users", or ""
}

func (e *LimitError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("%s: more than %d %s", e.Place, e.Limit, e.What)
	}
	return fmt.Sprintf("more than %d %s", e.Limit, e.What)
}
