package wire

import (
	"cmp"
	"net"
	"net/http"
	"strings"
)

// NormalizeRequests gives h requests with an origin-form as target (RFC 9112, section 3.2.2), whose Host is the one of the absolute-form, and closes
// the connection of HTTP/1.0 after the response. If h panics, that connection is reset: the end of the connection is the end of a response
// without a length, which must not look whole.
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

// reset has the closing of a connection reset it.
func reset(c net.Conn) {
	for {
		switch have := c.(type) {
		case *net.TCPConn:
			_ = have.SetLinger(0) // a connection that is closed already was not closed here
			return
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return
		}
	}
}
