// Package lean is an HTTP/1.1 client for plain requests and answers. It does in
// the goroutine of its caller what http.Transport does in two more for each
// connection.
//
//   - Connections are kept and reused, by requests with the same Authorization. One that
//     its server has closed, or on which anything came that was not asked for, is never
//     used again.
//   - A request is sent a second time only if it has no body, its method is safe, and the
//     connection, one that was used before, ended without a byte of an answer; all
//     others fail. ErrUnsent says that nothing of the request has left.
//   - Bodies are streamed both ways. The end of a request's context closes its
//     connection.
//   - Requests are written, and answers parsed, by package net/http, but the head of
//     an answer is judged before: a head with two readings (RFC 9112, sections 5.2, 6.3
//     and 11.1) is an error.
//
// It speaks neither HTTP/2, for whose servers it has a Fallback, nor to proxies, and
// does not switch protocols.
package lean
