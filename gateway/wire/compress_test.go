package wire_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

func TestCompress(t *testing.T) {
	long := strings.Repeat(`{"id":"pod"}`, 2000)
	text := func(media, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			_, _ = io.WriteString(w, body)
		}
	}
	ranged := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.css", time.Time{}, strings.NewReader(long))
	}
	for name, tc := range map[string]struct {
		handler              http.HandlerFunc
		method, accept, span string
		status               int
		coding, etag         string
	}{
		"long":            {handler: text("application/json", long), accept: "br, gzip", coding: "gzip"},
		"page":            {handler: text("text/html; charset=utf-8", long), accept: "gzip", coding: "gzip"},
		"ETag":            {handler: text("application/json", long, "ETag", `"a"`), accept: "gzip", coding: "gzip", etag: `"a-gzip"`},
		"ETag, plain":     {handler: text("application/json", long, "ETag", `"a"`), etag: `"a"`},
		"short":           {handler: text("application/json", long[:wire.MinCompressed-1]), accept: "gzip"},
		"not accepted":    {handler: text("application/json", long)},
		"refused":         {handler: text("application/json", long), accept: "gzip;q=0, identity"},
		"events":          {handler: text("text/event-stream", long), accept: "gzip"},
		"encoded":         {handler: text("application/json", long, "Content-Encoding", "br"), accept: "gzip", coding: "br"},
		"range":           {handler: ranged, accept: "gzip", span: "bytes=10-20000", status: http.StatusPartialContent},
		"without a range": {handler: ranged, accept: "gzip", coding: "gzip"},
		"HEAD":            {handler: text("application/json", long), method: http.MethodHead, accept: "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(wire.Compress(tc.handler))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Accept-Encoding": tc.accept, "Range": tc.span} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Content-Encoding"); got != tc.coding || res.Header.Get("Etag") != tc.etag {
				t.Errorf("coding %q with ETag %q, want %q with %q", got, res.Header.Get("Etag"), tc.coding, tc.etag)
			}
			if res.Header.Get("Vary") != "Accept-Encoding" || tc.status != 0 && res.StatusCode != tc.status {
				t.Errorf("%d, Vary %q", res.StatusCode, res.Header.Get("Vary"))
			}
			if tc.coding == "gzip" {
				z, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if plain, err := io.ReadAll(z); err != nil || string(plain) != long || len(body) > len(long)/10 {
					t.Errorf("%d bytes, %d in gzip, error %v, want %d", len(plain), len(body), err, len(long))
				}
			}
		})
	}
}
