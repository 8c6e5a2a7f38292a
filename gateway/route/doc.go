// Package route matches a method and a raw path to one operation.
//
// Matching works on the bytes of the request target, segment by segment, and
// each route has exactly one spelling: what could be read in two ways (dot
// segments, escaped slashes, backslashes, empty segments, path parameters) is
// refused rather than normalised, so no two parsers behind each other can
// disagree about where a request goes.
package route
