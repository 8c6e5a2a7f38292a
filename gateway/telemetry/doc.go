// Package telemetry records exchanges. Each exchange has one Event, which is written as one log line, counted in metrics, and attached to
// the exchange's span. The package also sets up the OpenTelemetry providers.
//
// Each metric attribute (operation, door, dialect, outcome) has a fixed set of values, so that callers cannot increase the number of
// series. Organisations and teams appear only as they are configured; keys and IDs appear only in logs and spans. Credentials never reach
// this package.
package telemetry
