// Package audit records all changes with their authors and results: the intent is written before a change, the result after it. Each line
// has the SHA-256 of the line before, so that [Verify] finds a line that was changed, removed or inserted later. Shippers deliver the log
// to a webhook or an OpenTelemetry receiver.
package audit
