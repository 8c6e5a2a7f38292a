// Package limits answers operators about quotas.
package limits
