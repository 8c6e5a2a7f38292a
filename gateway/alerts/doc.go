// Package alerts notifies the receivers of organisations, and writes to the log, about budgets near their limit, idle resources,
// changes made outside the gateway, approval requests, and exceptions that are about to end.
package alerts
