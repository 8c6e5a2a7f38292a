// Package wire judges HTTP/1.1 requests as bytes, before net/http parses them.
//
// A server that is lenient where the next parser is strict, or the other way
// round, can be made to see two requests where the other sees one. The server
// of package net/http repairs or ignores much that RFC 9112 forbids, and what
// it has repaired is invisible behind it. A Listener from this package therefore
// passes only requests that have exactly one reading:
//
//   - the request line is METHOD SP origin-form SP HTTP/1.1 CR LF;
//   - every line ends with CR LF, none is folded, names are tokens directly
//     followed by their colon, values are printable ASCII and tabs;
//   - exactly one Host; a length is given once or not at all, as plain digits
//     or as the one transfer coding "chunked", never both;
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
// The package speaks HTTP/1.1; TLS, if any, ends below it. A handler that hijacks
// its connection gets the rest of the stream judged as requests, unless it calls
// [Release]. Whether the caller of a request has left, [Left] asks the connection itself.
//
//	l = wire.NewListener(l, wire.Config{Refused: logRefusal})
//	err := server.Serve(l)
package wire
