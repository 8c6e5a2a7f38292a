// Package upstream sends requests to the platform. It is the only package that holds the organisations' platform keys, which it adds to
// requests immediately before sending. A connection is used for one credential only.
//
// It does not follow redirects, does not decompress responses unless asked to, and never sends a request twice that may cost money.
// Requests are sent by package http1, or by http.Transport for WebSockets and platforms that require HTTP/2. An [Account] reads the
// resources and bills of an organisation with its credential, independent of any caller.
package upstream
