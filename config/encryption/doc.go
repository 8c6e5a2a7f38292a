// Package encryption says which TLS the gateway speaks: one answer for all of its
// listeners and clients. It reads no certificate and knows no setting.
package encryption
