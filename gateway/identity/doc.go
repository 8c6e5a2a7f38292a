// Package identity turns a credential into a Caller, and is where secrets end:
// what leaves the package names a caller and can no longer authenticate one.
//
// Keys are held as SHA-256 digests only, tokens not at all. Invariants: neither is
// stored, logged or returned; every failure looks the same from outside.
package identity
