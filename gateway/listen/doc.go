// Package listen listens for requests: it bounds connections, ends TLS, judges heads, and serves requests until the end.
package listen
