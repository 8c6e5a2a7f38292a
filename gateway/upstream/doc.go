// Package upstream sends requests to the platform. It is the only package that holds the organisations' platform credentials, and it adds
// one to a request at the last moment. A connection carries the calls of one credential only.
//
// It never follows redirects, never decompresses, and never sends a request twice that may cost money. Requests are sent by package lean or,
// as configured, by http.Transport. [Account] reads what an organisation has at the platform and was billed there, with the credential of
// the organisation and nothing of a caller.
package upstream
