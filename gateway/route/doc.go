// Package route maps the method and the unparsed path of a request to an operation.
//
// The package matches the bytes of the request target, segment by segment. Each route has exactly one spelling. The package does not
// normalise paths, but refuses everything that parsers could interpret differently (dot segments, escaped slashes, backslashes, empty
// segments, path parameters). Other parsers that handle the same request therefore find the same route.
package route
