// Package telemetry records exchanges: each has one Event, which is written as one log line, counted in metrics, and attached to
// the exchange's span. It also sets up the OpenTelemetry providers.
//
// Metric attributes are closed sets (operation, door, dialect, outcome), so that callers cannot increase the number of series.
// Organisations and teams appear only as they are configured; keys and IDs appear only in logs and spans. Credentials never reach
// this package.
package telemetry
