// Package e2e tests the program as its users have it: the built binary, run as
// a server and as commands, and called by programs that are not Go.
package e2e
