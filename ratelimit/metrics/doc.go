// Package metrics exports a limiter's counters to OpenTelemetry; docs/ratelimits.md explains
// the metrics.
package metrics
