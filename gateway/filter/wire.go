package filter

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// Bounds of a request's headers.
const (
	maxHeaders     = 100
	maxHeaderValue = 8192
)

// CheckHeaders refuses requests whose meaning depends on who reads them: versions with
// other framing rules, header bytes and names that proxies fold or rewrite, and
// WebSockets but to load-balanced endpoints. It looks at form only.
type CheckHeaders struct{}

// Name implements Filter.
func (CheckHeaders) Name() string { return "wire" }

// Request refuses with 505, 400 or 431.
func (CheckHeaders) Request(_ context.Context, ex *Exchange) error {
	in := &ex.In
	if in.Major != 1 && (in.Major != 2 || in.Minor != 0) {
		return problem.VersionUnsupported.New("only HTTP/1.1, HTTP/1.0 and HTTP/2 are supported").With("Connection", "close")
	}
	n := 0
	for name, values := range in.Header {
		if strings.ContainsRune(name, '_') {
			return problem.BadRequest.New("a header name holds an underscore")
		}
		for _, v := range values {
			if n++; n > maxHeaders {
				return problem.HeadersTooLarge.Newf("more than %d headers", maxHeaders)
			}
			if len(v) > maxHeaderValue {
				return problem.HeadersTooLarge.Newf("a header is longer than %d bytes", maxHeaderValue)
			}
			if !printable(v) {
				return problem.BadRequest.New("a header holds bytes outside printable ASCII")
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
