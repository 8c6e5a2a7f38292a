// Package otlptest is an OTLP receiver in process, by HTTP and by gRPC, which keeps what
// it is sent, decoded. It can be made to fail.
package otlptest
