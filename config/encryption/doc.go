// Package encryption sets the TLS versions and cipher suites of all listeners and clients of the gateway, and the cipher that seals data
// held by callers and browsers. It does not load certificates or settings.
package encryption
