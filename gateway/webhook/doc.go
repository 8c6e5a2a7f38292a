// Package webhook delivers events to external receivers. It signs events as defined by the Standard Webhooks specification 1.0.0, and
// retries failed deliveries. It refuses receivers with private addresses that the configuration does not list.
package webhook
