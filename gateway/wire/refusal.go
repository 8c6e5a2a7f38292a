package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Refusal describes why a request was refused. Nothing more is read from its connection. A handler that reads a body with invalid framing
// gets the Refusal as a read error.
type Refusal struct { //nolint:errname // named after its purpose; it is an error only for readers of bodies
	// Status is the HTTP status of the response.
	Status int
	// Reason describes the error for the client. It does not repeat bytes of the request.
	Reason string
}

// Error implements error.
func (r *Refusal) Error() string { return "wire: " + r.Reason }

func bad(reason string) *Refusal { return &Refusal{http.StatusBadRequest, reason} }

// All refusals. They are constant, so that they cannot reveal bytes of the request.
//
//nolint:gochecknoglobals // constants, in all but the language's sense
var (
	errMethod       = bad("the request method is malformed")
	errTarget       = bad("the request target must be an absolute path or an http URL without user, in visible ASCII with valid escapes")
	errRequestLine  = bad("the request line does not end with HTTP/1.1 or HTTP/1.0 and CR LF")
	errVersion      = &Refusal{http.StatusHTTPVersionNotSupported, "only HTTP/1.1 and HTTP/1.0 are supported"}
	errName         = bad("a header line does not begin with a valid name and a colon")
	errFold         = bad("a header line begins with white space")
	errValue        = bad("a header value contains bytes outside printable ASCII")
	errLineEnd      = bad("a line does not end with CR LF")
	errHeadTooLarge = &Refusal{http.StatusRequestHeaderFieldsTooLarge, "the request line and headers are too large"}
	errFields       = &Refusal{http.StatusRequestHeaderFieldsTooLarge, "the request has too many headers"}
	errHost         = bad("the request must have exactly one Host header, which contains a name or an address and optionally a port")
	errLength       = bad("the value of Content-Length is not a plain decimal number")
	errLengths      = bad("the request has more than one Content-Length header")
	errCoding       = bad("unsupported Transfer-Encoding: only chunked is supported, and not in HTTP/1.0")
	errBoth         = bad("the request has both a Content-Length and a Transfer-Encoding header")
	errExpect       = &Refusal{http.StatusExpectationFailed, "unsupported Expect: only 100-continue is supported"}
	errChunkSize    = bad("a chunk size is not a number of one to eight hexadecimal digits")
	errChunkExt     = bad("a chunk extension is malformed or too long")
	errChunkEnd     = bad("the data of a chunk does not have the declared size")
	errTrailer      = bad("the trailer section is too large")
)

// response returns the final HTTP response of a connection, which contains the refusal as a problem document (RFC 9457).
func (r *Refusal) response(now time.Time) []byte {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(r.Status), r.Status, r.Reason})
	if err != nil { // cannot fail: a struct of strings and integers
		panic(err)
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		r.Status, http.StatusText(r.Status), now.UTC().Format(http.TimeFormat), len(body), body)
}
