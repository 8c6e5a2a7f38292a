package wire

import (
	"cmp"
	"net/http"
	"strings"
)

// Plain gives h requests with an origin-form as target (RFC 9112, section 3.2.2), whose Host is the one of the absolute-form, and closes
// the connection of HTTP/1.0 after the response.
func Plain(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
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
