// Package encryption says which TLS the gateway speaks, one answer for all of its
// listeners and clients, and with which cipher it seals what callers and browsers keep for it. It
// reads no certificate and knows no setting.
package encryption
