// Package limits counts requests against quotas and addresses, and answers operators about quotas.
package limits
