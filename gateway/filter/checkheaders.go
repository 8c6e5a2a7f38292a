package filter

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// Limits of request headers.
const (
	maxHeaders     = 100
	maxHeaderValue = 8192
)

// CheckHeaders refuses requests that different parsers may interpret differently: requests with an unsupported HTTP version, or with header
// names or bytes that proxies rewrite. It also refuses WebSockets to anything other than a load-balanced endpoint.
type CheckHeaders struct{}

// Name implements Filter.
func (CheckHeaders) Name() string { return "check headers" }

// Request returns 505 for an unsupported HTTP version, 431 if the headers are too many or too long, and 400 if they are malformed.
func (CheckHeaders) Request(_ context.Context, ex *Exchange) error {
	in := &ex.In
	if in.Major != 1 && (in.Major != 2 || in.Minor != 0) {
		return problem.VersionUnsupported.New("only HTTP/1.1, HTTP/1.0 and HTTP/2 are supported").With("Connection", "close")
	}
	n := 0
	for name, values := range in.Header {
		if strings.ContainsRune(name, '_') {
			return problem.BadRequest.New("header names must not contain underscores")
		}
		for _, v := range values {
			if n++; n > maxHeaders {
				return problem.HeadersTooLarge.Newf("the request has more than %d headers", maxHeaders)
			}
			if len(v) > maxHeaderValue {
				return problem.HeadersTooLarge.Newf("a header value is longer than %d bytes", maxHeaderValue)
			}
			if !printable(v) {
				return problem.BadRequest.New("a header value contains bytes outside printable ASCII")
			}
		}
	}
	return checkUpgrade(ex)
}

func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\t' {
			return false
		}
	}
	return true
}
