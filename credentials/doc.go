// Package credentials says who calls and what they may do.
//
// A Trust is the folder of trust roots. Its Identify turns the certificate
// chain of a TLS connection into a Caller. A Verifier turns a Caller and the
// credentials that came with a call into a Principal, whose May answers
// whether a call on a slice or sliver is granted, and if not, why every single
// credential did not count.
//
//	bytes → Trust.Identify → Caller → Verifier.Verify → Principal.May → Grant
//
// Credentials are the GENI federations' signed XML documents: SFA privileges
// (geni_sfa 2 and 3) with delegation, and ABAC statements (geni_abac 1), which
// let a tool speak for a user and prove what an operator's Policy asks for.
// Nothing is believed that is not signed by somebody whose certificate chains
// to a trust root, and nobody speaks for names outside the authority that the
// root, and every authority below it, stands for.
package credentials
