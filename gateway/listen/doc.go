// Package listen listens for requests: it bounds connections, ends TLS, judges heads, and serves what is accepted until the end.
package listen
