package wire

import (
	"cmp"
	"net"
	"net/http"
	"strings"
)

// NormalizeRequests returns a handler that calls h with the request target in origin-form (RFC 9112, section 3.2.2); the Host is taken from
// an absolute-form. It closes HTTP/1.0 connections after the response. If h panics, such a connection is reset, because the end of the
// connection would otherwise look like the end of a complete response.
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

// reset makes closing the connection reset it.
func reset(c net.Conn) {
	for {
		switch have := c.(type) {
		case *net.TCPConn:
			_ = have.SetLinger(0) // fails only if the connection is already closed
			return
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return
		}
	}
}
