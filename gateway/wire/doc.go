// Package wire judges HTTP/1 requests as bytes, before net/http parses them.
//
// A server that is lenient where the next parser is strict, or the other way
// round, can be made to see two requests where the other sees one. The server
// of package net/http repairs or ignores much that RFC 9112 forbids, and what
// it has repaired is invisible behind it. A Listener from this package therefore
// passes only requests that have exactly one reading:
//
//   - the request line is METHOD SP TARGET SP VERSION CR LF. TARGET is an origin-form, or an absolute-form without user and IPv6
//     literal; VERSION is HTTP/1.1 or HTTP/1.0. One empty line before it is dropped;
//   - every line ends with CR LF, none is folded, names are tokens directly
//     followed by their colon, values are printable ASCII and tabs;
//   - exactly one Host, or at most one in HTTP/1.0; a length is given once or not at all, as plain digits
//     or as the one transfer coding "chunked", never both, and never a coding in HTTP/1.0;
//   - chunk sizes are bare hexadecimal digits, chunks end where they say.
//
// Anything else is answered with 400, 417, 431 or 505 and the connection is
// closed. A fault inside a body becomes an error of reading the body instead,
// because by then the request has a handler that answers it.
//
// Bytes are judged where net/http wants them: nothing is copied unless a
// client sends the next request before the answer to the last (pipelining), in
// which case at most one read's worth is kept. To find the next head the
// package follows the framing of bodies; it never looks at their content.
//
// A client that half-closes its connection has two seconds to be answered a GET or HEAD: until then the server is not told of the end, which it would
// take for a client that has left. TLS, if any, ends below the package. A handler that hijacks
// its connection gets the rest of the stream judged as requests, unless it calls
// [Release]. Whether the caller of a request has left, [ClientGone] asks the connection itself.
//
// [Compress] is for long texts on the way out.
//
//	l = wire.NewListener(l, wire.Config{Refused: logRefusal})
//	err := server.Serve(l)
package wire
