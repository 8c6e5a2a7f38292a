package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Refusal is why a connection was not read any further. It is an error, which
// the reader of a body whose framing is broken gets.
type Refusal struct { //nolint:errname // what it is; that it is also an error is for its reader
	// Status is the HTTP status the client is told.
	Status int
	// Reason describes the fault of the request, for the client; it repeats
	// none of its bytes.
	Reason string
}

// Error implements error.
func (r *Refusal) Error() string { return "wire: " + r.Reason }

func bad(reason string) *Refusal { return &Refusal{http.StatusBadRequest, reason} }

// The refusals. None depends on the client's bytes, so none can leak it.
//
//nolint:gochecknoglobals // constants, in all but the language's sense
var (
	errMethod       = bad("the method is not a token followed by one space")
	errTarget       = bad("the request target is not an absolute path, or an http URL without a user, in visible ASCII with whole escapes")
	errRequestLine  = bad("the request line does not end with HTTP/1.1 or HTTP/1.0 and CR LF")
	errVersion      = &Refusal{http.StatusHTTPVersionNotSupported, "only HTTP/1.1 and HTTP/1.0 are supported"}
	errName         = bad("a header line does not begin with a token and a colon")
	errFold         = bad("a header line begins with white space")
	errValue        = bad("a header value holds bytes outside printable ASCII")
	errLineEnd      = bad("a line does not end with CR LF")
	errHeadTooLarge = &Refusal{http.StatusRequestHeaderFieldsTooLarge, "the request line and headers are too large"}
	errFields       = &Refusal{http.StatusRequestHeaderFieldsTooLarge, "the request has too many headers"}
	errHost         = bad("the request needs exactly one Host, a name or address with an optional port")
	errLength       = bad("the Content-Length is not one plain decimal number")
	errLengths      = bad("the request has more than one Content-Length")
	errCoding       = bad("the only transfer coding understood is chunked, once, and none in HTTP/1.0")
	errBoth         = bad("the request has both Content-Length and Transfer-Encoding")
	errExpect       = &Refusal{http.StatusExpectationFailed, "the only expectation understood is 100-continue, once"}
	errChunkSize    = bad("a chunk size is not up to eight hexadecimal digits")
	errChunkExt     = bad("a chunk extension is malformed or too long")
	errChunkEnd     = bad("a chunk does not end where its size says")
	errTrailer      = bad("the trailer section is too large")
)

// response writes the refusal as the last answer of a connection: problem
// details (RFC 9457).
func (r *Refusal) response(now time.Time) []byte {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(r.Status), r.Status, r.Reason})
	if err != nil { // a struct of strings and ints always encodes
		panic(err)
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		r.Status, http.StatusText(r.Status), now.UTC().Format(http.TimeFormat), len(body), body)
}
