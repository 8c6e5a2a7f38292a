package wire

import (
	"cmp"
	"net"
	"net/http"
	"strings"
)

// NormalizeRequests returns a handler that converts request targets to origin-form (RFC 9112, section 3.2) before it calls h. If a target
// is in absolute-form, the handler sets the request's Host to the host of the target. After an HTTP/1.0 response, it closes the connection.
// If h panics during an HTTP/1.0 request, it resets the connection, because a normal close would mark the end of a complete response.
func NormalizeRequests(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
			defer func() {
				if v := recover(); v != nil {
					reset(Conn(r.Context()))
					panic(v)
				}
			}()
		}
		if _, rest, absolute := strings.Cut(r.RequestURI, "://"); absolute && r.RequestURI[0] != '/' {
			if i := strings.IndexAny(rest, "/?"); i < 0 {
				rest = ""
			} else {
				rest = rest[i:]
			}
			if !strings.HasPrefix(rest, "/") {
				rest = "/" + rest
			}
			r.RequestURI = rest
			r.URL.Scheme, r.URL.Host, r.URL.Path = "", "", cmp.Or(r.URL.Path, "/")
		}
		h.ServeHTTP(w, r)
	})
}

// reset changes a connection so that closing it sends a reset.
func reset(c net.Conn) {
	if tcp, ok := innermost(c).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only if the connection is already closed
	}
}
