// Package http1 is an HTTP/1.1 client for plain requests and responses. It works in the goroutine of its caller, whereas http.Transport
// uses two additional goroutines per connection.
//
//   - Connections are reused by requests with the same Authorization. A connection that was closed by the server, or received any data
//     while idle, even part of a TLS record, is never used again. This is checked immediately before the request is written. Data received
//     later is the response, as for every HTTP/1.1 client.
//   - On a reused connection, data after a response is an error, because the response may be a late one to another request. A response
//     received before its request was written is an error as well, unless its status is an error or Duplex is set.
//   - A request is retried only if it has no body, its method is safe, and its reused connection ended before the first byte of a
//     response. Other failures are returned. ErrUnsent reports that nothing of the request was sent.
//   - Bodies are streamed in both directions. When the context of a request ends, its connection is closed.
//   - Package net/http writes requests and parses responses, but response headers are checked first: headers with more than one
//     interpretation (RFC 9112, sections 5.2, 6.3 and 11.1) are an error.
//
// The client does not support HTTP/2 (see Transport.Fallback), HTTP proxies, or protocol upgrades.
package http1
