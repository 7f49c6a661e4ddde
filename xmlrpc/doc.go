// Package xmlrpc is the wire format of XML-RPC, for servers and clients: it
// reads and writes methodCall and methodResponse documents, serves methods over
// HTTP and calls them.
//
// # Values
//
// A value is a Go any of one of these types:
//
//	<string>, or text without a type    string
//	<int>, <i4>, <i1>, <i2>, <i8>       int
//	<boolean>                           bool
//	<double>, <float>                   float64
//	<dateTime.iso8601>                  time.Time, UTC when no zone is given
//	<base64>                            []byte
//	<array>                             []any, never nil
//	<struct>                            map[string]any, never nil
//	<nil/>                              nil
//
// Encoding also takes other integers, floats, named types of these, slices, and
// maps with string keys. It writes members sorted by name, so that equal values
// give equal bytes. Characters that XML cannot hold (most control characters,
// bytes that are not UTF-8) are written as U+FFFD, since what they come from is
// mostly the output of a program, and an answer with a blemish is better than
// none; member names with such characters are refused. A carriage return is
// written as &#13; and so survives.
//
// <i8> and <nil/> are extensions, and written only when Extensions says so.
// They are always read, with any prefix: Apache's library writes <ex:nil/>.
//
// Value reads parameters with errors that name the place.
//
// # Strictness
//
// What is read must be well-formed XML in UTF-8, US-ASCII or ISO-8859-1 and
// must conform to XML-RPC, with a few deviations of real clients: white space
// around numbers, "true" and "false" for booleans, an array without data. A
// document type declaration is refused, and so is every entity but the five
// predefined ones; nothing outside the document is ever read. A struct with two
// members of one name is refused, because two readers could take it for two
// different things. Size, nesting and number of values are bounded by Limits.
// Names are compared without their namespace prefix; attributes are ignored.
package xmlrpc
