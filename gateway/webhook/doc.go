// Package webhook delivers events to receivers outside: signed as the Standard
// Webhooks specification 1.0.0 says, retried, and to no address that a receiver's
// name should not lead to.
package webhook
