// Package http1 is an HTTP/1.1 client for plain requests and answers. It does in
// the goroutine of its caller what http.Transport does in two more for each
// connection.
//
//   - Connections are kept and reused, by requests with the same Authorization. A connection
//     that its server has closed, or on which anything came while it was idle, even a part of
//     a TLS record, is never used again. It is looked at immediately before the request is
//     written. Bytes that come after that are the response, as for every client of HTTP/1.1.
//   - A response on a connection that was used before is an error if more bytes follow it,
//     since it may be the late response to another request. So is a response, unless its
//     status is an error or Duplex is set, that begins before its request has been written.
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
package http1
