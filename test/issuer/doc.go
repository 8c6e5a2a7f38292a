// Package issuer is an OpenID Connect issuer for tests: it publishes keys and signs what it
// is told to, with the standard library alone, so that it and the gateway cannot be wrong
// together. Tests say what goes wrong with it.
package issuer
