package xmldsig

import "fmt"

// A Rule names why a document or a signature is refused.
type Rule string

// The rules. Those that xmlsec1 does not have say so.
const (
	RuleSyntax      Rule = "not well-formed"
	RuleDTD         Rule = "document type declaration" // not in xmlsec1
	RuleEntity      Rule = "entity reference"          // not in xmlsec1
	RuleEncoding    Rule = "encoding"                  // UTF-8 only; not in xmlsec1
	RuleVersion     Rule = "XML version"               // 1.0 only; not in xmlsec1
	RuleNamespace   Rule = "namespaces"                // not in xmlsec1
	RuleLimit       Rule = "limit"                     // not in xmlsec1
	RuleDuplicateID Rule = "duplicate id"              // not in xmlsec1
	RuleID          Rule = "malformed id"              // not in xmlsec1
	RuleValue       Rule = "markup in a value"         // not in xmlsec1
	RuleStructure   Rule = "structure of the signature"
	RuleReference   Rule = "reference" // one, to an xml:id; xmlsec1 takes more
	RuleTransform   Rule = "transform" // xmlsec1 knows more
	RuleAlgorithm   Rule = "algorithm" // xmlsec1 knows more
	RuleKeyInfo     Rule = "key information"
	RuleKeyValue    Rule = "KeyValue" // xmlsec1 trusts it
	RuleDigest      Rule = "digest"
	RuleSignature   Rule = "signature"
)

// An Error is a refusal and the rule behind it.
type Error struct {
	Rule Rule
	Text string
}

func (e *Error) Error() string { return string(e.Rule) + ": " + e.Text }

func refuse(rule Rule, format string, args ...any) error {
	return &Error{Rule: rule, Text: fmt.Sprintf(format, args...)}
}
