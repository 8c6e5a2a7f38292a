// Package filter is the gateway's request pipeline. It contains the Exchange (one request with its response), the two-phase Filter, the
// Chain that runs filters in order, and the filters that do not belong to a feature package.
//
// The HTTP door and the Envoy door run the same chain, which has three parts. The Headers part needs only the request headers, so a refusal
// there does not read the body. The Body part parses the body and translates legacy requests to v2 calls. The Call part checks one v2 call:
// it runs once for a v2 request, and once for each v2 call that a legacy request is translated to.
//
// Invariants: no filter changes Exchange.In. Exchange.Out is built from parsed values only. A filter refuses a request by returning an
// error and never writes an error response itself. Errors become problems (RFC 9457) in this package and nowhere else.
package filter
