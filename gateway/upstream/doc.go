// Package upstream sends requests to the platform. It is the only place that
// holds the organisations' platform credentials, and it puts one on a request
// at the last moment. A connection carries the calls of one credential alone.
//
// It never follows redirects, never decompresses, and never sends twice what may
// cost money. Requests are sent by package lean or, as configured, by http.Transport.
package upstream
