// Package issuer is an OpenID Connect issuer for tests: it publishes keys and signs any claims,
// with the standard library alone, so that it and the gateway cannot be wrong together. Tests say
// what goes wrong with it.
package issuer
