// Package identity maps a credential to a [Caller]. A credential is a key, a token of an OpenID Connect issuer (see [Verifier]) or a client
// certificate.
//
// The package keeps only SHA-256 digests of keys and does not keep tokens. It keeps certificates, which are not secret, while the caller
// has access. Keys and tokens are never stored, logged or returned. Callers cannot distinguish the reasons of a failure.
package identity
