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

// CheckHeaders refuses requests that different parsers may interpret differently: unsupported versions, header names and bytes that proxies
// rewrite, and WebSockets except to load-balanced endpoints. It checks only the form.
type CheckHeaders struct{}

// Name implements Filter.
func (CheckHeaders) Name() string { return "check headers" }

// Request returns 505, 400 or 431.
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
				return problem.HeadersTooLarge.Newf("more than %d headers", maxHeaders)
			}
			if len(v) > maxHeaderValue {
				return problem.HeadersTooLarge.Newf("a header is longer than %d bytes", maxHeaderValue)
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
