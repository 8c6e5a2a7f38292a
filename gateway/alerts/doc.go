// Package alerts tells receivers of organisations, and the log, of what they should know: budgets, idle resources, changes without the gateway,
// exceptions that end.
package alerts
