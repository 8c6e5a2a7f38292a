package filter

import (
	"io"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// hopHeaders lists headers that are not forwarded in either direction, because they apply to one connection (RFC 9110, section 7.6.1) or
// belong to the gateway.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
	"Authorization", "Cookie", "Set-Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	"X-Real-Ip", "X-Forwarded-Client-Cert",
	"Content-Length", HeaderDecision, HeaderWarning, HeaderMutation, HeaderUnknown, HeaderIgnored,
}

// endToEnd returns the headers that are forwarded with an opaque message.
func endToEnd(given http.Header) http.Header {
	out := given.Clone()
	for _, line := range given["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		out.Del(name)
	}
	return out
}

// buildOpaqueRequest sets Out for a call whose content the gateway does not read. Cookies are dropped, because all endpoints share the
// gateway's host name and could read each other's cookies.
func buildOpaqueRequest(ex *Exchange) error {
	in, out := &ex.In, &ex.Out
	out.Method, out.Path, out.Query = in.Method, "/"+ex.Params["path"], in.Query
	out.Header = endToEnd(in.Header)
	for _, name := range ex.Body.removedHeaders {
		delete(out.Header, name)
	}
	out.Header.Set(HeaderRequestID, ex.RequestID)
	if out.Tunnel = wantsWebSocket(in); out.Tunnel {
		upgrade(out.Header)
	}
	out.Body = in.Body
	if in.Source != nil {
		out.Source, out.Length = &bounded{Reader: in.Source, left: ex.BodyLimit()}, in.Length
	}
	return nil
}

// bounded is a body that fails when it exceeds a limit.
type bounded struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, problem.TooLarge.New("the request body exceeds the limit for load-balanced endpoints").With("Connection", "close")
	}
	return n, err
}

// filterOpaqueResponse removes headers from a worker's response that could affect the gateway's own pages, which have the same origin.
func filterOpaqueResponse(a *Response) {
	length := a.Header["Content-Length"]
	a.Header = endToEnd(a.Header)
	if a.Stream != nil && len(length) == 1 {
		a.Header["Content-Length"] = length
	}
	confine(a.Header)
	if a.Tunnel != nil {
		upgrade(a.Header)
	}
}
