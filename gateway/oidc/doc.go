// Package oidc verifies the tokens of OpenID Connect issuers: JSON Web Tokens
// (RFC 7519) that are signed with a key of an issuer (RFC 7515, RFC 7517), judged as
// RFC 8725 and RFC 9068 advise.
//
// A token's own statements on how to verify it are not believed: the algorithm must be
// one that is configured for its issuer, the key one that the issuer publishes where its
// discovery document says, and the headers jku, jwk, x5u and x5c are not read. Errors
// never have any of the signature, nor more of a token than its issuer.
package oidc
