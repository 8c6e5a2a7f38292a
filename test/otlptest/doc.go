// Package otlptest is an OTLP/HTTP receiver in process, which keeps what it is sent,
// decoded. It can be made to fail.
package otlptest
