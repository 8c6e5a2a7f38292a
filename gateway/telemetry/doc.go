// Package telemetry records the gateway's work: one Event per exchange,
// written as one log line, counted in metrics and attached to the exchange's
// span, and the OpenTelemetry providers behind them.
//
// Metric attributes are closed sets (operation, door, dialect, outcome), so no
// caller can make series grow; organisations, keys and ids are in logs and
// spans only. The metrics of sources (tollgate.source.age, .failed) do name
// organisations: those of the configuration. Nothing here ever sees a credential.
package telemetry
