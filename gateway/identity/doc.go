// Package identity turns a credential into a [Caller]: a key, a token of an OpenID Connect issuer ([Verifier]) or a client certificate.
//
// Keys are held as SHA-256 digests only and tokens are not held; certificates, which are not secret, are held as long as their access
// lasts. Keys and tokens are never stored, logged or returned, and every failure looks the same to the caller.
package identity
