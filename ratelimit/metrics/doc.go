// Package metrics tells OpenTelemetry what a limiter counts; docs/ratelimits.md says what
// the metrics mean.
package metrics
