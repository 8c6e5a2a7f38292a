// Package reverseproxy is the HTTP door: it turns an HTTP request into an
// Exchange, drives the chain, sends the chain's request to the platform and
// streams the answer back.
//
// It composes no answer of its own and decides nothing; both doors therefore
// behave alike. Requests are read from the bytes of the request target, never
// from a normalised URL.
package reverseproxy
