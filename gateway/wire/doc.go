// Package wire validates HTTP/1 requests as bytes before net/http parses them.
//
// Two parsers can see different requests in the same bytes if one of them is more lenient than the other (request smuggling). The server in
// package net/http repairs or ignores many violations of RFC 9112, and handlers cannot see that it did so. Therefore connections of a
// listener from this package only return requests that have exactly one interpretation:
//
//   - The request line is METHOD SP TARGET SP VERSION CR LF. TARGET is in origin-form, or in absolute-form without user and IPv6 literal.
//     VERSION is HTTP/1.1 or HTTP/1.0. One empty line before it is dropped.
//   - Every line ends with CR LF and is not folded. Names are tokens directly followed by a colon. Values are printable ASCII and tabs.
//   - There is exactly one Host, or at most one in HTTP/1.0. The length is given at most once, either as plain digits or as the single
//     transfer coding "chunked", which HTTP/1.0 must not use.
//   - Chunk sizes are plain hexadecimal digits, and chunks end where their sizes say.
//
// Other requests get 400, 417, 431 or 505, and the connection is closed. If the error is in a body, the handler gets a read error instead,
// because the handler is already responsible for the response.
//
// The package checks bytes in the buffer supplied by net/http. It copies bytes only for pipelined requests, and at most one read at a time.
// To find the next request, it follows the framing of bodies, but it does not examine their content.
//
// The net/http server treats a half-closed connection as a disconnect. If a client half-closes its connection during a GET or HEAD request,
// the package hides this from the server for two seconds, so that the server can respond. TLS must be terminated by the inner listener.
// After a handler has hijacked its connection, the package continues to check received data as requests unless the handler calls [Release].
// [ClientGone] checks whether a client has disconnected.
//
// [Compress] compresses long text responses.
//
//	l = wire.NewListener(l, logRefusal)
//	err := server.Serve(l)
package wire
