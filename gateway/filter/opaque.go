package filter

import (
	"io"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// hopHeaders are the headers that belong to one connection (RFC 9110, section 7.6.1),
// or to the gateway: they pass in neither direction.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Authorization", "Cookie", "Set-Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "X-Forwarded-Client-Cert",
	"Content-Length", HeaderDecision, HeaderWarning, HeaderMutation, HeaderUnknown, HeaderIgnored,
}

// endToEnd returns the headers of a message that passes unread: all but those that
// end here.
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

// buildOpaqueRequest fills in Out for a call that is the worker's own affair. Its cookies
// stay behind: all endpoints share the gateway's name, and one would read another's.
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

// bounded is a body that is refused when it turns out to be too long.
type bounded struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, problem.TooLarge.New("the request body exceeds what a load-balanced endpoint takes").With("Connection", "close")
	}
	return n, err
}

// filterOpaqueResponse makes a worker's answer fit to be seen: as it is, but without effect on the gateway's own pages, which have the same origin.
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
