// Package wire validates HTTP/1 requests as bytes before net/http parses them.
//
// If one parser is lenient where the next one is strict, they can see different requests in the same bytes (request smuggling). The server
// in package net/http repairs or ignores much that RFC 9112 forbids, and handlers cannot see these repairs. Connections of a listener from
// this package therefore pass only requests with exactly one interpretation:
//
//   - The request line is METHOD SP TARGET SP VERSION CR LF. TARGET is in origin-form, or in absolute-form without user and IPv6 literal.
//     VERSION is HTTP/1.1 or HTTP/1.0. One empty line before it is dropped.
//   - Every line ends with CR LF and is not folded. Names are tokens directly followed by a colon. Values are printable ASCII and tabs.
//   - There is exactly one Host, or at most one in HTTP/1.0. The length is given at most once, either as plain digits or as the single
//     transfer coding "chunked", which HTTP/1.0 must not use.
//   - Chunk sizes are plain hexadecimal digits, and chunks end where their sizes say.
//
// Other requests get 400, 417, 431 or 505, and the connection is closed. An error inside a body is returned as a read error instead,
// because by then the handler is responsible for the response.
//
// Bytes are checked in the buffer supplied by net/http. They are copied only for pipelined requests, at most one read at a time. To find
// the next request, the package follows the framing of bodies, but it never examines their content.
//
// If a client half-closes its connection, a GET or HEAD has two seconds to be answered before the server sees the end, because the server
// would treat it as a disconnect. TLS, if any, ends below this package. After a handler has hijacked its connection, further data is still
// checked as requests unless the handler calls [Release]. [ClientGone] checks the connection itself for a disconnect.
//
// [Compress] compresses long text responses.
//
//	l = wire.NewListener(l, wire.Config{Refused: logRefusal})
//	err := server.Serve(l)
package wire
