package xmlrpc

import "fmt"

// Fault is the answer to a call that failed, as XML-RPC has it. It is an error.
type Fault struct {
	Code int
	Text string
}

func (f *Fault) Error() string { return fmt.Sprintf("fault %d: %s", f.Code, f.Text) }

// Fault codes that several implementations share ("Specification for Fault
// Code Interoperability").
const (
	NotWellFormed       = -32700 // the document is no XML
	UnsupportedEncoding = -32701 // its encoding is not known
	InvalidCharacter    = -32702 // a character is not of its encoding, or not of XML
	InvalidXMLRPC       = -32600 // it is XML, but not XML-RPC
	MethodNotFound      = -32601
	InvalidParams       = -32602
	InternalError       = -32603
	ApplicationError    = -32500
	SystemError         = -32400
	TransportError      = -32300
)
