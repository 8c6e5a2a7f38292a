// Package alerts tells receivers of organisations, and the log, of budgets near their end, idle resources, changes without the gateway,
// requests for approval and exceptions that end.
package alerts
