// Package ship ships the audit log to receivers: a webhook and a receiver of OpenTelemetry.
package ship
