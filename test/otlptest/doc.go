// Package otlptest is an OTLP receiver in process, by HTTP and by gRPC, which keeps all exports,
// decoded. It can be made to fail.
package otlptest
