// Package route maps a method and an unparsed path to one operation.
//
// Matching works on the bytes of the request target, segment by segment. Each route has exactly one spelling. Anything that parsers could
// interpret differently (dot segments, escaped slashes, backslashes, empty segments, path parameters) is refused instead of normalised, so
// that several parsers in a row cannot disagree about the route of a request.
package route
