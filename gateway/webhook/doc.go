// Package webhook delivers events to external receivers. Deliveries are signed as defined by the Standard Webhooks specification 1.0.0
// and retried, and private addresses are refused unless the receiver's configuration lists them.
package webhook
