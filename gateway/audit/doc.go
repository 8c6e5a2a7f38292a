// Package audit records all changes with their authors and results. The intent is written before a change, and the result is written after
// it. Each line contains the SHA-256 of the previous line, so that [Chain.Verify] detects lines that were changed, removed or inserted
// later. Shippers deliver the log to a webhook or an OpenTelemetry receiver.
package audit
