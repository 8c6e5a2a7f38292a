// Package identity turns credentials into a Caller, and is where secrets end:
// what leaves the package names a caller and can no longer authenticate one.
//
// Keys are held as SHA-256 digests only, tokens not at all; certificates, which are no
// secrets, as long as the access that they gave. Invariants: neither keys nor tokens are stored,
// logged or returned; every failure looks the same from outside.
package identity
