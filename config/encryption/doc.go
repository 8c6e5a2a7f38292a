// Package encryption defines the TLS versions and cipher suites of all listeners and clients of the gateway, and the cipher for encrypted
// data that callers and browsers store. It does not load certificates or settings.
package encryption
